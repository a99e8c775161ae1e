// Time as an argument: core code compares Instants but cannot read a clock; the edges own a Clock
// and pass its value in.
//
// Thread-safety: Instant and Duration are values; SteadyClock may be read from any thread;
// ManualClock is for one thread.
#pragma once

#include <chrono>

namespace mooncake {

using Duration = std::chrono::nanoseconds;

// The clock type of Instant. It has no now(), on purpose.
struct InstantClock {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<InstantClock>;
  // NOLINTNEXTLINE(readability-identifier-naming): the name that std::chrono looks for.
  static constexpr bool is_steady = true;
};

// A point of monotonic time. Only differences mean anything, and only within one process (or one
// simulation).
using Instant = InstantClock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant Now() const = 0;
};

// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override;
  // One for all; it has no state.
  static const SteadyClock& Get();
};

// A clock that moves when told to.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override { return now_; }
  void Advance(Duration by) { now_ += by; }

 private:
  Instant now_{};
};

}  // namespace mooncake
