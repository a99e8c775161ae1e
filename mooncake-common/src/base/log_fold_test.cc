#include "mooncake-common/src/base/log_fold.h"

#include <gtest/gtest.h>

#include <chrono>

#include "mooncake-common/src/base/clock.h"

namespace mooncake {
namespace {

using namespace std::chrono_literals;

TEST(LogFold, WritesTheFirstAtOnceAndThenOneLineAPeriodWithTheCount) {
  ManualClock clock;
  LogFold fold(10s);
  EXPECT_EQ(fold.Admit(clock.Now()), 1U);
  for (int i = 0; i < 99; ++i) {
    clock.Advance(100ms);
    EXPECT_EQ(fold.Admit(clock.Now()), 0U);
  }
  clock.Advance(100ms);
  EXPECT_EQ(fold.Admit(clock.Now()), 100U);
  EXPECT_EQ(fold.Admit(clock.Now()), 0U);
}

TEST(LogFold, TwentyThousandFailuresInTenSecondsMakeTwoLinesThatCountThemAll) {
  ManualClock clock;
  LogFold fold(5s);
  std::uint64_t lines = 0;
  std::uint64_t counted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t times = fold.Admit(clock.Now());
    lines += times > 0 ? 1 : 0;
    counted += times;
    clock.Advance(500us);
  }
  EXPECT_EQ(lines, 2U);
  clock.Advance(5s);
  EXPECT_EQ(counted + fold.Admit(clock.Now()), 20'001U);
}

}  // namespace
}  // namespace mooncake
