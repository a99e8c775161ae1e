#include "mooncake-common/src/concurrency/parking.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace mooncake {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// Sleeps while `*word` is `expected`, until a wake-up, a signal or the deadline.
void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Instant deadline) {
  const auto since_boot = deadline.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  const timespec until{.tv_sec = seconds.count(), .tv_nsec = (since_boot - seconds).count()};
  // The BITSET form takes an absolute time of CLOCK_MONOTONIC, which is SteadyClock's.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected,
          deadline == Instant::max() ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

bool SpinWait::Turn() {
  constexpr std::uint32_t kTurnsPerClockRead = 16;
  if (turns_ == 0) {
    end_ = SteadyClock::Get().Now() + budget_;
  } else if (turns_ % kTurnsPerClockRead == 0) {
    if (SteadyClock::Get().Now() >= end_) {
      return false;
    }
    // Whoever will notify may be queued behind this very thread, on its core. Alone there, this
    // returns at once.
    sched_yield();
  }
  ++turns_;
  CpuPause();
  return budget_ > Duration::zero();
}

void Event::Notify() {
  // After the exchange the waiter may free the event. Waking by a stale address is harmless: the
  // kernel only compares it, and whoever may sleep there now checks again.
  if (state_.exchange(kSet, std::memory_order_acq_rel) == kAsleep) {
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
}

bool Event::Wait(Instant deadline, Duration spin) {
  if (IsSet()) {
    return true;
  }
  for (SpinWait turns(spin); turns.Turn();) {
    if (IsSet()) {
      return true;
    }
  }
  while (SteadyClock::Get().Now() < deadline) {
    std::uint32_t seen = kClear;
    if (!state_.compare_exchange_strong(seen, kAsleep, std::memory_order_acq_rel,
                                        std::memory_order_acquire) &&
        seen == kSet) {
      return true;
    }
    FutexWait(state_, kAsleep, deadline);
    if (IsSet()) {
      return true;
    }
  }
  return IsSet();
}

}  // namespace mooncake
