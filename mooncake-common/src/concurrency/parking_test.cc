#include "mooncake-common/src/concurrency/parking.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

using namespace std::chrono_literals;

TEST(SpinWait, EndsByItselfAndBeginsAgainAfterRestart) {
  SpinWait none(Duration::zero());
  EXPECT_FALSE(none.Turn());
  SpinWait spin(1us);
  int turns = 0;
  while (spin.Turn()) {
    ASSERT_LT(++turns, 1'000'000);
  }
  spin.Restart();
  EXPECT_TRUE(spin.Turn() || !SpinningPays(SteadyClock::Get().Now()));
}

// Runs `work` on a thread that may use the first processor this process may use, and no other.
template <typename Work>
Thread OnOneProcessor(Work work) {
  auto thread = Thread::Start("pinned", [work = std::move(work)] {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) {
      ++first;
    }
    CPU_ZERO(&allowed);
    CPU_SET(first, &allowed);
    ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
    work();
  });
  EXPECT_TRUE(thread.has_value());
  return std::move(*thread);
}

TEST(YieldCore, OfAThreadBesideOneThatComputesSaysThatSpinningDoesNotPay) {
  std::atomic<bool> stop = false;
  auto computes = OnOneProcessor([&] {
    while (!stop.load(std::memory_order_relaxed)) {
    }
  });
  std::optional<Instant> gave_up;
  auto spins = OnOneProcessor([&] {
    const auto now = [] { return SteadyClock::Get().Now(); };
    const Instant hang = HangDeadline();
    while (now() < hang) {
      const Instant before = now();
      if (!YieldCore(before)) {
        gave_up = before;
        EXPECT_FALSE(SpinningPays(before));
        SpinWait spin;
        EXPECT_FALSE(spin.Turn() && !SpinningPays(now()));
        return;
      }
    }
  });
  spins.Join();
  stop = true;
  computes.Join();
  EXPECT_TRUE(gave_up.has_value());
}

TEST(Event, WaitReturnsAtOnceWhenSetAndAtTheDeadlineWhenNot) {
  Event event;
  EXPECT_FALSE(event.IsSet());
  EXPECT_FALSE(event.Wait(SteadyClock::Get().Now() + 1ms));
  EXPECT_FALSE(event.Wait(SteadyClock::Get().Now() - 1s));
  EXPECT_FALSE(event.Wait(Instant::min()));
  event.Notify();
  EXPECT_TRUE(event.IsSet());
  EXPECT_TRUE(event.Wait(Instant::min()));
  event.Reset();
  EXPECT_FALSE(event.IsSet());
}

TEST(Event, WakesASleeperWithAndWithoutADeadline) {
  for (const Instant deadline : {HangDeadline(), Instant::max()}) {
    Event event;
    std::atomic<bool> woken = false;
    auto sleeper = Thread::Start("sleeper", [&] { woken = event.Wait(deadline, 0us); });
    ASSERT_TRUE(sleeper.has_value());
    event.Notify();
    sleeper->Join();
    EXPECT_TRUE(woken);
  }
}

TEST(Event, WakesEveryWaiter) {
  constexpr int kWaiters = 4;
  Event event;
  std::atomic<int> woken = 0;
  {
    std::array<Thread, kWaiters> waiters;
    for (int i = 0; i < kWaiters; ++i) {
      auto started = Thread::Start("waiter", [&event, &woken, i] {
        woken += event.Wait(HangDeadline(), i % 2 == 0 ? 0us : 50us) ? 1 : 0;
      });
      ASSERT_TRUE(started.has_value());
      waiters.at(i) = std::move(*started);
    }
    event.Notify();
  }
  EXPECT_EQ(woken, kWaiters);
}

// Goal: no wake-up is lost and each hand-over is seen with its data, whether the waiter spins,
// sleeps, or is just on its way to sleep. Method: two threads pass a plain counter back and forth.
TEST(Event, HandsPlainDataBackAndForth) {
  constexpr std::uint64_t kRounds = 3000;
  for (const Duration spin : {Duration(0us), Duration(1us), Duration(20us)}) {
    Event ping;
    Event pong;
    std::uint64_t counter = 0;  // Plain on purpose: tsan sees a missing order.
    auto other = Thread::Start("pong", [&] {
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        ASSERT_TRUE(ping.Wait(HangDeadline(), spin));
        ping.Reset();
        ++counter;
        pong.Notify();
      }
    });
    ASSERT_TRUE(other.has_value());
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      ++counter;
      ping.Notify();
      ASSERT_TRUE(pong.Wait(HangDeadline(), spin));
      pong.Reset();
      ASSERT_EQ(counter, 2 * (i + 1));
    }
  }
}

TEST(Event, AOneShotMayDieAsSoonAsItsWaitReturned) {
  constexpr int kRounds = 2000;
  std::atomic<Event*> next = nullptr;
  std::atomic<bool> stop = false;
  auto notifier = Thread::Start("notifier", [&] {
    while (!stop) {
      if (Event* const event = next.exchange(nullptr)) {
        event->Notify();
      } else {
        std::this_thread::yield();  // To the waiter, where there is but one processor for both.
      }
    }
  });
  ASSERT_TRUE(notifier.has_value());
  for (int i = 0; i < kRounds; ++i) {
    auto event = std::make_unique<Event>();
    next = event.get();
    EXPECT_TRUE(event->Wait(HangDeadline(), i % 2 == 0 ? 0us : 20us));
    event.reset();
  }
  stop = true;
}

}  // namespace
}  // namespace mooncake
