#include "mooncake-common/src/net/reactor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "mooncake-common/src/net/socket.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

// Runs everything that was posted before it.
void Drain(Reactor& reactor) {
  std::promise<void> reached;
  reactor.Post([&reached] { reached.set_value(); });
  ASSERT_EQ(reached.get_future().wait_for(kHangLimit), std::future_status::ready);
}

void SendByte(int fd) {
  const std::array<std::byte, 1> byte{};
  ASSERT_EQ(SocketWrite(fd, byte).bytes, 1U);
}

class ReactorTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().has_value()); }
  // Until the reactor sleeps, or has at least slept since.
  void WaitForSleep() {
    const std::uint64_t before = reactor_.sleeps();
    reactor_.Post([] {});
    ASSERT_TRUE(WaitUntil([&] { return reactor_.sleeps() != before; }));
  }
  Reactor reactor_;
};

TEST_F(ReactorTest, RunsPostedFunctionsInOrderOnItsOwnThread) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    reactor_.Post([&order, i, this] {
      EXPECT_TRUE(reactor_.InReactorThread());
      order.push_back(i);
    });
  }
  Drain(reactor_);
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_FALSE(reactor_.InReactorThread());
}

TEST_F(ReactorTest, IsWokenFromSleepByPostsTimersAndDescriptors) {
  auto [ours, theirs] = SocketPair().value();
  std::promise<std::uint32_t> seen;
  const WatchId id = reactor_
                         .Watch(ours.get(), EPOLLIN | EPOLLONESHOT,
                                [&seen](std::uint32_t events) { seen.set_value(events); })
                         .value();
  WaitForSleep();
  SendByte(theirs.get());
  auto future = seen.get_future();
  ASSERT_EQ(future.wait_for(kHangLimit), std::future_status::ready);
  EXPECT_EQ(future.get() & EPOLLIN, static_cast<std::uint32_t>(EPOLLIN));
  reactor_.Unwatch(id);

  WaitForSleep();
  std::promise<void> fired;
  reactor_.After(std::chrono::milliseconds(1), [&fired] { fired.set_value(); });
  EXPECT_EQ(fired.get_future().wait_for(kHangLimit), std::future_status::ready);
  WaitForSleep();
  Drain(reactor_);
}

TEST_F(ReactorTest, LeavesAOneShotWatchSilentUntilItIsModified) {
  auto [ours, theirs] = SocketPair().value();
  std::atomic<int> calls{0};
  const WatchId id = reactor_
                         .Watch(ours.get(), EPOLLIN | EPOLLONESHOT,
                                [&calls](std::uint32_t) { calls.fetch_add(1); })
                         .value();
  SendByte(theirs.get());
  ASSERT_TRUE(WaitUntil([&] { return calls.load() != 0; }));
  SendByte(theirs.get());
  Drain(reactor_);
  WaitForSleep();
  EXPECT_EQ(calls.load(), 1);
  reactor_.Modify(id, EPOLLIN | EPOLLONESHOT);  // The unread bytes are still there.
  ASSERT_TRUE(WaitUntil([&] { return calls.load() != 1; }));
  EXPECT_EQ(calls.load(), 2);
  reactor_.Unwatch(id);
}

TEST_F(ReactorTest, SleepsWithoutWakingWhileIdle) {
  auto [ours, theirs] = SocketPair().value();
  const WatchId id = reactor_.Watch(ours.get(), EPOLLIN, [](std::uint32_t) {}).value();
  // Something else takes its time on another reactor: this one has no reason to stir. A wake-up of
  // before may come late, so it is watched until one such time has passed without any.
  Reactor other;
  ASSERT_TRUE(other.Start().has_value());
  EXPECT_TRUE(WaitUntil([&] {
    WaitForSleep();
    const std::uint64_t before = reactor_.sleeps();
    std::promise<void> later;
    other.After(std::chrono::milliseconds(20), [&later] { later.set_value(); });
    later.get_future().wait();
    return reactor_.sleeps() == before;
  }));
  reactor_.Unwatch(id);
}

TEST_F(ReactorTest, IgnoresStaleIds) {
  auto [ours, theirs] = SocketPair().value();
  const WatchId stale =
      reactor_.Watch(ours.get(), EPOLLIN, [](std::uint32_t) { FAIL() << "ended watch"; }).value();
  reactor_.Unwatch(stale);
  std::promise<void> called;
  const WatchId fresh = reactor_
                            .Watch(ours.get(), EPOLLIN | EPOLLONESHOT,
                                   [&called](std::uint32_t) { called.set_value(); })
                            .value();
  EXPECT_NE(stale, fresh);
  reactor_.Modify(stale, 0);
  reactor_.Unwatch(stale);
  reactor_.Unwatch(WatchId::kNone);
  reactor_.Unwatch(static_cast<WatchId>(~0ULL));
  SendByte(theirs.get());
  EXPECT_EQ(called.get_future().wait_for(kHangLimit), std::future_status::ready);
  reactor_.Unwatch(fresh);
}

TEST_F(ReactorTest, EndsAWatchFromWithinItsOwnCallback) {
  auto [ours, theirs] = SocketPair().value();
  std::promise<void> called;
  WatchId id = WatchId::kNone;
  const auto kept = std::make_shared<int>(0);
  reactor_.Post([&] {  // On the reactor's thread, so that `id` is set before the call.
    id = reactor_
             .Watch(ours.get(), EPOLLIN,
                    [&, kept](std::uint32_t) {
                      reactor_.Unwatch(id);
                      called.set_value();
                    })
             .value();
  });
  SendByte(theirs.get());
  ASSERT_EQ(called.get_future().wait_for(kHangLimit), std::future_status::ready);
  reactor_.Unwatch(id);  // Waits for the call's end.
  EXPECT_EQ(kept.use_count(), 1) << "the callback has been destroyed";
}

// Goal: after Unwatch returns, its callback neither runs nor exists. Method: a busy descriptor, and
// a flag that the callback reads right after.
TEST_F(ReactorTest, NeverRunsACallbackAfterUnwatchHasReturned) {
  auto [ours, theirs] = SocketPair().value();
  SendByte(theirs.get());  // Never read: the level-triggered watch is always ready.
  for (int round = 0; round < 300; ++round) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    const WatchId id =
        reactor_.Watch(ours.get(), EPOLLIN, [p = alive.get()](std::uint32_t) { p->fetch_add(1); })
            .value();
    ASSERT_TRUE(WaitUntil([&] { return alive->load() != 0; }));
    reactor_.Unwatch(id);
    alive.reset();  // A late call would be a use after free.
  }
}

TEST_F(ReactorTest, RunsTimersInOrderAndNotThoseCancelled) {
  std::vector<int> order;
  std::promise<void> done;
  reactor_.After(std::chrono::milliseconds(4), [&] {
    order.push_back(2);
    done.set_value();
  });
  reactor_.After(std::chrono::milliseconds(1), [&] { order.push_back(1); });
  const TimerId cancelled =
      reactor_.After(std::chrono::milliseconds(2), [] { FAIL() << "cancelled"; });
  EXPECT_TRUE(reactor_.CancelTimer(cancelled));
  EXPECT_FALSE(reactor_.CancelTimer(cancelled));
  ASSERT_EQ(done.get_future().wait_for(kHangLimit), std::future_status::ready);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(ReactorTest, WaitsForATimerThatIsRunningWhenItIsCancelled) {
  std::promise<void> started;
  std::promise<void> go_on;
  std::atomic<bool> ended{false};
  const TimerId id = reactor_.After(Duration::zero(), [&] {
    started.set_value();
    go_on.get_future().wait();
    ended.store(true);
  });
  started.get_future().wait();
  const std::jthread releaser([&] { go_on.set_value(); });
  EXPECT_FALSE(reactor_.CancelTimer(id));
  EXPECT_TRUE(ended.load());
}

TEST(Reactor, RunsWhatWasPostedBeforeStopAndNothingAfter) {
  Reactor reactor;
  std::atomic<int> runs{0};
  reactor.Post([&] { runs.fetch_add(1); });
  ASSERT_TRUE(reactor.Start().has_value());
  reactor.Post([&] { runs.fetch_add(1); });
  reactor.Stop();
  EXPECT_EQ(runs.load(), 2);
  reactor.Post([&] { runs.fetch_add(1); });
  reactor.After(Duration::zero(), [&] { runs.fetch_add(1); });
  reactor.Stop();
  EXPECT_EQ(runs.load(), 2);
  EXPECT_EQ(reactor.Start().error().code, ErrorCode::kBusy);
}

// Whoever waits for such a function must hear that it is gone.
TEST(Reactor, DropsWhatIsPostedWhileTheLastFunctionsRun) {
  struct Again {
    void operator()() const { reactor.Post(Again{reactor, token}); }
    Reactor& reactor;
    std::shared_ptr<int> token;
  };
  Reactor reactor;
  ASSERT_TRUE(reactor.Start());
  auto token = std::make_shared<int>();
  const std::weak_ptr<int> kept = token;
  reactor.Post(Again{reactor, std::move(token)});
  reactor.Stop();
  EXPECT_TRUE(kept.expired());
}

TEST(Reactor, SaysWhyADescriptorCannotBeWatched) {
  Reactor reactor;
  const auto id = reactor.Watch(-1, EPOLLIN, [](std::uint32_t) {});
  ASSERT_FALSE(id.has_value());
  EXPECT_EQ(id.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ReactorTest, TakesPostsAndTimersFromManyThreads) {
  std::atomic<int> runs{0};
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          reactor_.Post([&] { runs.fetch_add(1); });
          const TimerId id = reactor_.After(Duration::zero(), [&] { runs.fetch_add(1); });
          if (i % 2 == 0 && reactor_.CancelTimer(id)) {
            runs.fetch_add(1);
          }
        }
      });
    }
  }
  ASSERT_TRUE(WaitUntil([&] { return runs.load() >= 4 * 500 * 2; }));
  Drain(reactor_);
  EXPECT_EQ(runs.load(), 4 * 500 * 2);
}

}  // namespace
}  // namespace mooncake
