// What we know of one incarnation of a peer: its descriptor, its ranges in order, and our paths to
// it. A peer that restarts, or registers other memory, gets a new view.
//
// Thread-safety: the descriptor and ranges never change; the rest is guarded here.
// Ownership:     owns the endpoints. Whoever has slices in flight on a path holds the view.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/log_fold.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/engine/path_chooser.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/metadata/segment_descriptor.h"
#include "mooncake-transfer-engine/src/transports/transport.h"

namespace mooncake::transfer {

class Batch;

// One transport's way to the peer, with what is on it right now.
struct Path {
  TransportTraits traits;
  std::unique_ptr<Endpoint> endpoint;
  std::size_t index = 0;  // In the view.
  std::atomic<std::uint64_t> inflight_bytes = 0;
  std::atomic<std::uint64_t> ended_runs = 0;  // Ends of slices that were told at once count as one.
  LogFold pauses;                             // Of their lines.

  // Stands still on a stall.
  [[nodiscard]] std::uint64_t Progress() const {
    return ended_runs.load(std::memory_order_relaxed) + endpoint->MovedBytes();
  }

  // Batches that found the path full and have nothing of their own on it that would wake them.
  Mutex waiting_mutex;
  std::vector<Batch*> waiting MC_GUARDED_BY(waiting_mutex);
  std::atomic<bool> anyone_waiting = false;
};

class PeerView {
 public:
  // Connects what can reach the peer (nothing is dialled yet).
  //
  // Errors: kUnavailable with every transport's reason when none can.
  [[nodiscard]] static Result<std::shared_ptr<PeerView>> Make(
      std::shared_ptr<const SegmentDescriptor> peer,
      std::span<const std::unique_ptr<Transport>> transports);

  [[nodiscard]] const SegmentDescriptor& descriptor() const { return *descriptor_; }
  [[nodiscard]] std::shared_ptr<const SegmentDescriptor> SharedDescriptor() const {
    return descriptor_;
  }
  [[nodiscard]] std::span<const std::unique_ptr<Path>> paths() const { return paths_; }

  // The bounds of the listed buffer that holds the whole range.
  [[nodiscard]] std::optional<AddressRange> FindRange(std::uint64_t address,
                                                      std::uint64_t length_bytes) const;

  // Whether `other` is the same incarnation offering the same memory at the same place.
  [[nodiscard]] bool SameAs(const SegmentDescriptor& other) const;

  // How many paths share the best rank: what large requests are cut for.
  [[nodiscard]] std::uint32_t best_rank_paths() const { return best_rank_paths_; }
  // Some path cannot take local memory that is not registered.
  [[nodiscard]] bool needs_registration() const { return registered_only_ != 0; }
  [[nodiscard]] std::uint32_t registered_only() const { return registered_only_; }

  struct Want {
    std::uint64_t length_bytes = 0;
    std::uint32_t excluded = 0;
    std::uint32_t avoided = 0;
    bool first_attempt = true;
  };
  // Null when no path may take the slice now. Reads `clock` only when there is something to decide.
  [[nodiscard]] Path* Choose(const Want& want, const Clock& clock);

  // Measuring is worth a clock reading only where there is a choice.
  [[nodiscard]] bool Measures() const { return sole_.load(std::memory_order_relaxed) < 0; }
  void OnDone(const Path& path, std::uint64_t length_bytes, Instant posted, Instant done);
  // Returns from when on the path may be tried again.
  Instant OnFailed(const Path& path, Instant now);
  // Whether a path other than `path` may be used right now.
  [[nodiscard]] bool HasAlternative(const Path& path, Instant now) const;

  // Set by failures: the descriptor should be fetched again before the next attempt.
  std::atomic<bool> suspect = false;

 private:
  PeerView() = default;

  std::shared_ptr<const SegmentDescriptor> descriptor_;
  std::vector<AddressRange> ranges_;  // Sorted, never overlapping.
  std::vector<std::unique_ptr<Path>> paths_;
  std::uint32_t best_rank_paths_ = 1;
  std::uint32_t registered_only_ = 0;
  std::atomic<int> sole_ = -1;  // Index of the path that needs no choosing, else -1.
  mutable Mutex mutex_;
  std::optional<PathChooser> chooser_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
