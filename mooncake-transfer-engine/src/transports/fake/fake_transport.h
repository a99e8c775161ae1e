// Moves real bytes inside this process and misbehaves as real wires do: it delays, reorders, fails,
// fills up, stands still and meets restarted peers. Decisions come from one seed.
//
// A remote address is an address of this process, so "peers" are whatever memory a test names.
//
// Thread-safety: all methods, from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "mooncake-common/src/base/random.h"
#include "mooncake-transfer-engine/src/transports/transport.h"

namespace mooncake::transfer {

struct FakeOptions {
  TransportTraits traits{.name = "fake"};
  bool instant = false;       // Post ends what it takes before it returns; in order.
  bool copies = true;         // false: only accounts, for measuring what lies above.
  std::size_t capacity = 64;  // Slices that one endpoint takes before it is full.
  std::uint32_t delay = 3;    // At most so many turns of Drive until a slice ends.
  std::uint32_t fail_percent = 0;
  // A thread that drives what was released; without it only callers drive.
  bool background = false;
};

class FakeTransport final : public Transport {
 public:
  // What tests switch while transfers run. Applies to all endpoints of the transport.
  struct Switches {
    std::atomic<bool> stalled = false;      // Takes slices and lets them lie.
    std::atomic<bool> cut_off = false;      // What endpoints answer to CutOff().
    std::atomic<bool> down = false;         // Every slice fails as kUnavailable.
    std::atomic<bool> unreachable = false;  // Connect refuses.
    std::atomic<std::size_t> capacity = 0;
    std::atomic<std::uint32_t> fail_next = 0;  // So many slices fail, then all is well.
    std::atomic<ErrorCode> fail_as = ErrorCode::kUnavailable;
    // Only endpoints made for this incarnation of the peer work; 0 = any.
    std::atomic<std::uint64_t> incarnation = 0;
    std::atomic<std::uint64_t> posted = 0;  // Slices taken so far.
    std::atomic<std::uint64_t> aborts = 0;
    std::atomic<bool> hold_aborts = false;  // Whoever aborts waits, to be notified of the end.
    // Of slices that have not ended, on any endpoint; a test adds to it.
    std::atomic<std::uint64_t> moved_bytes = 0;
    std::atomic<std::uint64_t> max_inflight = 0;
  };

  FakeTransport(std::uint64_t seed, const FakeOptions& options);
  ~FakeTransport() override;

  [[nodiscard]] Switches& switches() { return *switches_; }
  // Outlives the transport, which an engine usually owns.
  [[nodiscard]] std::shared_ptr<Switches> SharedSwitches() { return switches_; }

  [[nodiscard]] TransportTraits Describe() const override { return options_.traits; }
  [[nodiscard]] Result<void> Start() override;
  void Stop() override;
  void Announce(SegmentDescriptor& /*descriptor*/) const override {}
  [[nodiscard]] Result<std::unique_ptr<Endpoint>> Connect(
      std::shared_ptr<const SegmentDescriptor> peer) override;

 private:
  class Lane;
  class FakeEndpoint;
  class Background;

  const FakeOptions options_;
  const std::shared_ptr<Switches> switches_;
  std::atomic<std::uint64_t> next_seed_;
  const std::shared_ptr<Background> background_;
};

}  // namespace mooncake::transfer
