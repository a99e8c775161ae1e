// Decides which of a peer's paths carries the next slice, from what was measured and from what
// failed.
//
// Only paths of the best rank that has a usable one are considered: another transport is for when
// all of a better one are down, not for overflow. Within a rank the path wins on which the slice
// would end first, by learned bandwidth and latency and the bytes that are already on it.
//
// Sans-IO: time is an argument. Thread-safety: none; the owner guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/engine/path_health.h"

namespace mooncake::transfer {

class PathChooser {
 public:
  static constexpr std::size_t kMaxPaths = 32;  // One bit each in a mask.

  struct Options {
    HealthOptions health;
    double memory = 0.9;                    // Weight of the past in the averages.
    double first_bandwidth_bytes_ns = 1.0;  // 1 GB/s, until something was measured.
    double first_latency_ns = 20'000;
    double probe_cost = 8;  // A probing path looks so many times slower than it measured.
  };

  struct Question {
    std::uint64_t length_bytes = 0;
    std::span<const std::uint64_t> inflight_bytes;  // A path each.
    std::uint32_t excluded = 0;  // Bits of paths that cannot take it now (full, no registration).
    std::uint32_t avoided = 0;   // Bits of paths on which it failed: only if there is no other.
    bool first_attempt = true;   // Then a pause is no reason to wait when nothing else is there.
  };

  // `ranks`: one a path, lower is preferred.
  explicit PathChooser(const std::vector<std::uint32_t>& ranks) : PathChooser(ranks, Options()) {}
  PathChooser(const std::vector<std::uint32_t>& ranks, const Options& options);

  // Changes nothing. Empty when no path may take the slice now.
  [[nodiscard]] std::optional<std::size_t> Choose(const Question& question, Instant now) const;

  // Learns. Time spent in the path's queue does not count: a measurement begins when the slice
  // before it ended.
  void OnDone(std::size_t path, std::uint64_t length_bytes, Instant posted, Instant done);
  // Without a measurement.
  void OnDone(std::size_t path) { paths_[path].health.OnSuccess(); }
  // The instant from which the path may be tried again.
  Instant OnFailed(std::size_t path, Instant now) { return paths_[path].health.OnFailure(now); }

  [[nodiscard]] const PathHealth& health(std::size_t path) const { return paths_[path].health; }
  [[nodiscard]] double bandwidth_bytes_ns(std::size_t path) const { return paths_[path].bandwidth; }
  [[nodiscard]] std::size_t size() const { return paths_.size(); }
  // The one path that is chosen whatever the question while all are untroubled, if there is one.
  [[nodiscard]] std::optional<std::size_t> Sole() const;

 private:
  struct State {
    std::uint32_t rank;
    PathHealth health;
    double bandwidth;  // Bytes a nanosecond.
    double latency;    // Nanoseconds.
    Instant last_done{};
  };

  [[nodiscard]] double Cost(const State& path, std::uint64_t bytes) const;

  Options options_;
  std::vector<State> paths_;
};

}  // namespace mooncake::transfer
