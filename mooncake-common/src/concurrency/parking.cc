#include "mooncake-common/src/concurrency/parking.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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

// Longer than a turn of a few others that poll, shorter than a slice.
constexpr Duration kLongYield = std::chrono::microseconds(200);
constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(640);

thread_local Instant spin_again{};
thread_local Duration next_pause = kFirstPause;

}  // namespace

bool SpinningPays(Instant now) { return now >= spin_again; }

bool YieldCore(Instant now) {
  sched_yield();
  const Instant back = SteadyClock::Get().Now();
  if (back - now < kLongYield) {
    next_pause = kFirstPause;
    return true;
  }
  spin_again = back + next_pause;
  next_pause = std::min(2 * next_pause, kLongestPause);
  return false;
}

bool SpinWait::Turn() {
  constexpr std::uint32_t kTurnsPerClockRead = 16;
  const bool endless = budget_ == kEndlessSpin;
  if (turns_ == 0) {
    const Instant now = SteadyClock::Get().Now();
    if (!endless && !SpinningPays(now)) {
      return false;
    }
    end_ = endless ? Instant::max() : now + budget_;
  } else if (turns_ % kTurnsPerClockRead == 0) {
    const Instant now = SteadyClock::Get().Now();
    if (now >= end_ || (!YieldCore(now) && !endless)) {
      return false;
    }
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
