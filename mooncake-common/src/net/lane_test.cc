// Lanes over real sockets, a real reactor and real threads.
#include "mooncake-common/src/net/lane.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cstring>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

struct Call {
  std::uint64_t number = 0;
  Event ended;
  bool failed = false;
};

// Sends numbers, and completes a call when its number comes back.
class EchoDriver final : public LaneDriver {
 public:
  void Post(Call* call) {
    const MutexLock lock(mutex_);
    if (closed_) {
      call->failed = true;
      call->ended.Notify();
      return;
    }
    call->number = ++last_number_;
    posted_.push_back(call);
  }

  Result<Progress> Drive(int fd) override {
    EXPECT_FALSE(inside_.exchange(true)) << "two drivers at once";
    auto result = DriveAlone(fd);
    inside_.store(false);
    return result;
  }
  bool HasPending() override {
    const MutexLock lock(mutex_);
    return !posted_.empty() || !outgoing_.empty() || !waiting_.empty();
  }
  bool WantsWrite() override { return !outgoing_.empty(); }
  void OnClosed(const Error& why) override {
    const MutexLock lock(mutex_);
    closed_ = true;
    why_ = why;
    for (Call* call : posted_) {
      waiting_.emplace(call->number, call);
    }
    posted_.clear();
    for (const auto& [number, call] : std::exchange(waiting_, {})) {
      call->failed = true;
      call->ended.Notify();
    }
  }

  [[nodiscard]] Error why() {
    const MutexLock lock(mutex_);
    return why_;
  }

 private:
  Result<Progress> DriveAlone(int fd) {
    auto progress = Progress::kIdle;
    {
      const MutexLock lock(mutex_);
      for (Call* call : posted_) {
        waiting_.emplace(call->number, call);
        const auto bytes = std::as_bytes(std::span(&call->number, 1));
        outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
      }
      posted_.clear();
    }
    if (!outgoing_.empty()) {
      const IoOutcome sent = SocketWrite(fd, outgoing_);
      if (sent.kind == IoOutcome::Kind::kFailed) {
        return std::unexpected(SocketError("peer", sent));
      }
      outgoing_.erase(outgoing_.begin(),
                      outgoing_.begin() + static_cast<std::ptrdiff_t>(sent.bytes));
      progress = sent.bytes > 0 ? Progress::kMoved : progress;
    }
    const IoOutcome read = SocketRead(fd, std::span(incoming_).subspan(filled_));
    if (read.kind == IoOutcome::Kind::kFailed || read.kind == IoOutcome::Kind::kClosed) {
      return std::unexpected(SocketError("peer", read));
    }
    filled_ += read.bytes;
    std::size_t at = 0;
    for (; filled_ - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
      std::uint64_t number = 0;
      std::memcpy(&number, incoming_.data() + at, sizeof number);
      const MutexLock lock(mutex_);
      const auto found = waiting_.find(number);
      EXPECT_NE(found, waiting_.end());
      Call* call = found->second;
      waiting_.erase(found);
      call->ended.Notify();
    }
    std::memmove(incoming_.data(), incoming_.data() + at, filled_ - at);
    filled_ -= at;
    return read.bytes > 0 ? Progress::kMoved : progress;
  }

  std::atomic<bool> inside_{false};
  std::vector<std::byte> outgoing_;
  std::array<std::byte, 256> incoming_{};
  std::size_t filled_ = 0;
  Mutex mutex_;
  std::deque<Call*> posted_ MC_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Call*> waiting_ MC_GUARDED_BY(mutex_);
  std::uint64_t last_number_ MC_GUARDED_BY(mutex_) = 0;
  bool closed_ MC_GUARDED_BY(mutex_) = false;
  Error why_ MC_GUARDED_BY(mutex_);
};

// Sends back what it gets until the other side closes.
void Echo(int fd) {
  std::array<std::byte, 1000> buffer{};
  for (;;) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    poll(&wait, 1, -1);
    const IoOutcome got = SocketRead(fd, buffer);
    if (got.kind != IoOutcome::Kind::kMoved) {
      return;
    }
    auto rest = std::span<const std::byte>(buffer).first(got.bytes);
    while (!rest.empty()) {
      const IoOutcome sent = SocketWrite(fd, rest);
      if (sent.kind == IoOutcome::Kind::kFailed) {
        return;
      }
      rest = rest.subspan(sent.bytes);
    }
  }
}

class LaneTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reactor_.Start().has_value());
    auto [ours, theirs] = SocketPair().value();
    theirs_ = std::move(theirs);
    auto lane = Lane::Create(reactor_, std::move(ours), driver_);
    ASSERT_TRUE(lane.has_value());
    lane_ = std::move(*lane);
  }
  void StartEcho() {
    echo_ = std::jthread([this] { Echo(theirs_.get()); });
  }
  void TearDown() override { lane_.reset(); }

  Reactor reactor_;
  EchoDriver driver_;
  UniqueFd theirs_;
  std::jthread echo_;
  std::unique_ptr<Lane> lane_;
};

// Goal: nothing is lost among callers that wait, sleep, poll or leave, and never do two drive.
// Method: threads that mix all four; a lost wake-up hangs the test.
TEST_F(LaneTest, ServesCallersThatSpinSleepPollOrLeave) {
  StartEcho();
  constexpr std::uint64_t kThreads = 6;
  constexpr int kCalls = 1500;
  std::atomic<int> completed{0};
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (std::uint64_t seed = 0; seed < kThreads; ++seed) {
      threads.emplace_back([&, seed] {
        Rng rng(seed);
        for (int i = 0; i < kCalls; ++i) {
          Call call;
          driver_.Post(&call);
          switch (rng.Uniform(4)) {
            case 0:
              lane_->TryDrive();
              break;
            case 1:
              lane_->DriveUntil([&] { return call.ended.IsSet(); }, Duration::zero());
              break;
            case 2:
              lane_->DriveUntil([&] { return call.ended.IsSet(); }, kDefaultSpin);
              break;
            default:
              for (std::uint64_t turn = rng.Uniform(50); turn > 0 && !call.ended.IsSet(); --turn) {
                lane_->Poll();
              }
              lane_->Poll();
              lane_->Release();
          }
          ASSERT_TRUE(call.ended.Wait(HangDeadline(), Duration::zero()));
          EXPECT_FALSE(call.failed);
          completed.fetch_add(1);
        }
      });
    }
  }
  EXPECT_EQ(completed.load(), static_cast<int>(kThreads) * kCalls);
}

TEST_F(LaneTest, LeavesTheReactorAsleepWhileItsCallersWaitThemselves) {
  StartEcho();
  for (int i = 0; i < 300; ++i) {
    Call call;
    driver_.Post(&call);
    ASSERT_TRUE(lane_->DriveUntil([&] { return call.ended.IsSet(); }, kEndlessSpin));
  }
  EXPECT_EQ(lane_->reactor_wakeups(), 0U);
}

TEST_F(LaneTest, LetsTheReactorFinishWhatACallerLeaves) {
  Call call;
  driver_.Post(&call);
  EXPECT_FALSE(lane_->DriveUntil([&] { return call.ended.IsSet(); }, Duration::zero()));
  StartEcho();
  ASSERT_TRUE(call.ended.Wait(HangDeadline()));
  EXPECT_GE(lane_->reactor_wakeups(), 1U);
}

TEST_F(LaneTest, NoticesWithoutBeingUsedThatThePeerHasGone) {
  theirs_.Reset();
  ASSERT_TRUE(WaitUntil([&] { return lane_->closed(); }));
  EXPECT_EQ(driver_.why().code, ErrorCode::kUnavailable);
  Call late;
  driver_.Post(&late);
  lane_->TryDrive();
  EXPECT_TRUE(late.ended.Wait(HangDeadline()));
  EXPECT_TRUE(late.failed);
}

TEST_F(LaneTest, FailsWhatIsPendingWhenItIsClosed) {
  Call asleep;
  driver_.Post(&asleep);
  lane_->TryDrive();
  Call waiting;
  driver_.Post(&waiting);
  std::promise<void> inside;
  std::jthread waiter([&] {
    bool told = false;
    lane_->DriveUntil(
        [&] {
          if (!std::exchange(told, true)) {
            inside.set_value();
          }
          return waiting.ended.IsSet();
        },
        kEndlessSpin);
  });
  inside.get_future().wait();
  lane_->Close({ErrorCode::kCancelled, "enough"});
  EXPECT_TRUE(asleep.failed);
  EXPECT_TRUE(waiting.failed);
  EXPECT_EQ(driver_.why().message, "enough");
  lane_->Close({ErrorCode::kIo, "again"});
  EXPECT_EQ(driver_.why().message, "enough");
}

TEST_F(LaneTest, MayBeDestroyedRightAfterTheLastAnswer) {
  StartEcho();
  for (int round = 0; round < 200; ++round) {
    auto [ours, theirs] = SocketPair().value();
    const std::jthread echo([fd = theirs.get()] { Echo(fd); });
    EchoDriver driver;
    auto lane = Lane::Create(reactor_, std::move(ours), driver).value();
    Call call;
    driver.Post(&call);
    lane->TryDrive();
    ASSERT_TRUE(
        call.ended.Wait(HangDeadline()));  // Completed by the reactor, still inside perhaps.
    lane.reset();
  }
}

}  // namespace
}  // namespace mooncake
