#include "mooncake-common/src/concurrency/executor.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

TEST(Thread, HasItsNameCutToWhatTheKernelTakes) {
  Event named;
  std::array<char, 16> name{};
  auto thread = Thread::Start("a-name-that-is-too-long", [&] {
    EXPECT_TRUE(named.Wait(HangDeadline()));
    pthread_getname_np(pthread_self(), name.data(), name.size());
  });
  ASSERT_TRUE(thread.has_value());
  named.Notify();
  thread->Join();
  EXPECT_EQ(std::string(name.data()), "a-name-that-is-");
}

TEST(Thread, LeavesSignalsToTheHostProgram) {
  sigset_t inside;
  auto thread = Thread::Start("mask", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
  ASSERT_TRUE(thread.has_value());
  thread->Join();
  EXPECT_EQ(sigismember(&inside, SIGINT), 1);
  EXPECT_EQ(sigismember(&inside, SIGSEGV), 0);
  sigset_t here;
  pthread_sigmask(SIG_SETMASK, nullptr, &here);
  EXPECT_EQ(sigismember(&here, SIGINT), 0);
}

TEST(Thread, AssigningJoinsTheOldOne) {
  std::atomic<int> ended = 0;
  auto first = Thread::Start("first", [&] { ++ended; });
  auto second = Thread::Start("second", [&] { ++ended; });
  ASSERT_TRUE(first.has_value() && second.has_value());
  *first = std::move(*second);
  EXPECT_GE(ended, 1);
  first->Join();
  first->Join();
  EXPECT_EQ(ended, 2);
}

TEST(Executor, RunsTasksInOrderAndDrainsWhenStopped) {
  Executor executor({.name = "order"});
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(executor.Submit([&order, i] { order.push_back(i); }));
  }
  ASSERT_TRUE(executor.Start().has_value());
  executor.Stop();
  executor.Stop();
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_FALSE(executor.Submit([] {}));
}

TEST(Executor, RefusesWhatDoesNotFitIntoItsQueue) {
  Executor executor({.name = "full", .max_queued = 2});
  std::atomic<int> ran = 0;
  const auto count = [&ran] { ++ran; };
  EXPECT_TRUE(executor.Submit(count));
  EXPECT_TRUE(executor.Submit(count));
  EXPECT_FALSE(executor.Submit(count));
  ASSERT_TRUE(executor.Start().has_value());
  executor.Stop();
  EXPECT_EQ(ran, 2);
}

TEST(Executor, StoppingWithoutStartForgetsTheQueue) {
  Executor executor({});
  EXPECT_TRUE(executor.Submit([] { FAIL(); }));
  executor.Stop();
}

TEST(Executor, TasksMaySubmitAndSeveralThreadsShareTheWork) {
  Executor executor({.name = "share", .threads = 2});
  ASSERT_TRUE(executor.Start().has_value());
  Event first_runs;
  Event second_ran;
  // The first waits for the second, so they cannot be on one thread.
  ASSERT_TRUE(executor.Submit([&] {
    EXPECT_TRUE(executor.Submit([&] { second_ran.Notify(); }));
    first_runs.Notify();
    EXPECT_TRUE(second_ran.Wait(HangDeadline()));
  }));
  EXPECT_TRUE(first_runs.Wait(HangDeadline()));
  executor.Stop();
  EXPECT_TRUE(second_ran.IsSet());
}

TEST(Executor, EachTaskOfManySubmittersRunsOnce) {
  constexpr std::size_t kSubmitters = 3;
  constexpr std::size_t kTasks = 500;
  Executor executor({.name = "many", .threads = 2, .max_queued = kSubmitters * kTasks});
  ASSERT_TRUE(executor.Start().has_value());
  std::vector<std::atomic<int>> runs(kSubmitters * kTasks);
  {
    std::array<Thread, kSubmitters> submitters;
    for (std::size_t s = 0; s < kSubmitters; ++s) {
      auto started = Thread::Start("submit", [&, s] {
        for (std::size_t i = 0; i < kTasks; ++i) {
          EXPECT_TRUE(executor.Submit([&runs, at = s * kTasks + i] { ++runs[at]; }));
        }
      });
      ASSERT_TRUE(started.has_value());
      submitters.at(s) = std::move(*started);
    }
  }
  executor.Stop();
  for (const auto& count : runs) {
    EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace mooncake
