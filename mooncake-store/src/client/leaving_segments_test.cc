#include "mooncake-store/src/client/leaving_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::store {
namespace {

Instant Now() { return SteadyClock::Get().Now(); }
constexpr Duration kLong = std::chrono::hours(1);
constexpr Duration kPause = std::chrono::milliseconds(1);

// What was let go, in order.
class Gone {
 public:
  LeavingSegments::LetGo Taker() {
    return [this](const Uuid& segment) {
      const MutexLock lock(mutex_);
      gone_.push_back(segment);
      return true;
    };
  }
  std::vector<Uuid> Seen() {
    const MutexLock lock(mutex_);
    return gone_;
  }

 private:
  Mutex mutex_;
  std::vector<Uuid> gone_ MC_GUARDED_BY(mutex_);
};

TEST(LeavingSegments, GoInTheOrderOfTheirTimesAndNotBefore) {
  Gone gone;
  LeavingSegments leaving(gone.Taker(), kPause);
  ASSERT_TRUE(leaving.Add({1, 1}, Now() + kLong));
  ASSERT_TRUE(leaving.Add({2, 2}, Now() + std::chrono::milliseconds(2)));
  ASSERT_TRUE(leaving.Add({3, 3}, Now()));
  ASSERT_TRUE(WaitUntil([&] { return gone.Seen().size() == 2; }));
  ASSERT_TRUE(leaving.Add({1, 1}, Now())) << "said again: now";
  ASSERT_TRUE(WaitUntil([&] { return gone.Seen().size() == 3; }));
  EXPECT_EQ(gone.Seen().back(), Uuid(1, 1));
}

// Its thread has ended each time, and begins anew.
TEST(LeavingSegments, GoOneByOneToo) {
  Gone gone;
  LeavingSegments leaving(gone.Taker(), kPause);
  for (std::uint64_t i = 1; i <= 50; ++i) {
    ASSERT_TRUE(leaving.Add({i, i}, Now()));
    ASSERT_TRUE(WaitUntil([&] { return gone.Seen().size() == i; }));
  }
}

TEST(LeavingSegments, AreTriedAgainUntilTheyCanGo) {
  std::atomic<int> tries = 0;
  LeavingSegments leaving([&](const Uuid&) { return ++tries == 3; }, kPause);
  ASSERT_TRUE(leaving.Add({1, 1}, Now()));
  ASSERT_TRUE(WaitUntil([&] { return tries == 3; }));
}

TEST(LeavingSegments, StayAfterStop) {
  Gone gone;
  LeavingSegments leaving(gone.Taker(), kPause);
  ASSERT_TRUE(leaving.Add({1, 1}, Now() + kLong));
  leaving.Stop();
  leaving.Stop();
  EXPECT_EQ(leaving.Add({2, 2}, Now()).error().code, ErrorCode::kCancelled);
  EXPECT_THAT(gone.Seen(), testing::IsEmpty());
}

}  // namespace
}  // namespace mooncake::store
