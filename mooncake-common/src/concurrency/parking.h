// Waiting without waste: spin for some microseconds, then sleep in the kernel until notified.
//
// A sleeping thread takes 30 to 70 us to wake, an answer within one host comes in less; so who
// waits for one looks around for a while first. An idle waiter costs nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "mooncake-common/src/base/clock.h"

namespace mooncake {

// As long as it takes to wake a sleeper: spinning longer costs more than sleeping would have.
inline constexpr Duration kDefaultSpin = std::chrono::microseconds(50);

// Spins whatever it costs: for models and measurements.
inline constexpr Duration kEndlessSpin = Duration::max();

// Tells the core that this is a loop that waits.
inline void CpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Lets others onto this core for an instant, as whoever spins must now and then: who will notify
// may be queued behind this very thread. Alone on the core, and beside others that spin, it takes
// microseconds. But where somebody computes, the scheduler gives that one a whole slice, 3 ms and
// more, while a sleeper that is woken gets the core at once. So a yield that lasted long (`now` is
// when it began) returns false, and for a while, longer each time, spinning does not pay this
// thread: it should sleep instead.
[[nodiscard]] bool YieldCore(Instant now);
[[nodiscard]] bool SpinningPays(Instant now);

// Bounds a loop that polls: `while (!done() && spin.Turn()) {}`.
//
// Thread-safety: none; one loop has it.
class SpinWait {
 public:
  explicit SpinWait(Duration budget = kDefaultSpin) : budget_(budget) {}

  // Pauses for an instant and now and then lets others onto this core. False once the budget since
  // the first turn, or since Restart(), is used up, or spinning does not pay; the clock is read
  // every few turns only.
  [[nodiscard]] bool Turn();
  // Something moved: begin again.
  void Restart() { turns_ = 0; }

 private:
  Duration budget_;
  Instant end_{};
  std::uint32_t turns_ = 0;
};

// A flag to wait for. As a one-shot completion: Notify() once, Wait() once, then destroy it. As a
// parking place for one thread: Wait(), Reset(), look what there is to do, Wait() again.
//
// Thread-safety: Notify(), IsSet() and Wait() from any thread. What happened before Notify() is
// visible after a Wait() that returned true, or IsSet() that did.
// Ownership:     may be destroyed as soon as a Wait() or IsSet() returned true, even while Notify()
// is still on its way out.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Sets the flag and wakes all who wait. One atomic exchange when nobody sleeps.
  void Notify();

  [[nodiscard]] bool IsSet() const { return state_.load(std::memory_order_acquire) == kSet; }

  // Returns true once the flag is set, false at `deadline` (of SteadyClock; Instant::max() = none).
  // Spins for `spin` at most before it sleeps.
  [[nodiscard]] bool Wait(Instant deadline, Duration spin = kDefaultSpin);

  // Clears the flag. Only by the one thread that waits, while it does not. Notifications since the
  // last Wait() count as seen: look at the state they speak of after this call.
  void Reset() { state_.exchange(kClear, std::memory_order_acq_rel); }

 private:
  static constexpr std::uint32_t kClear = 0;
  static constexpr std::uint32_t kSet = 1;
  static constexpr std::uint32_t kAsleep = 2;  // Clear, and someone sleeps or is about to.

  std::atomic<std::uint32_t> state_{kClear};
};

}  // namespace mooncake
