#include "mooncake-common/src/concurrency/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string>

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

}  // namespace
}  // namespace mooncake
