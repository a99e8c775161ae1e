#include "mooncake-common/src/metrics/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "mooncake-common/src/concurrency/thread.h"

namespace mooncake {
namespace {

using ::testing::ElementsAre;

TEST(Counter, LosesNothingWhenThreadsCountTogether) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kRounds = 10'000;
  Counter counter;
  Gauge gauge;
  Histogram histogram(std::array<std::uint64_t, 2>{1, 3});
  {
    std::array<Thread, kThreads> threads;
    for (Thread& thread : threads) {
      auto started = Thread::Start("count", [&] {
        for (std::uint64_t i = 0; i < kRounds; ++i) {
          counter.Add(2);
          gauge.Add(i % 2 == 0 ? 5 : -4);
          histogram.Observe(i % 5);
        }
      });
      ASSERT_TRUE(started.has_value());
      thread = std::move(*started);
    }
  }
  EXPECT_EQ(counter.Value(), 2 * kThreads * kRounds);
  EXPECT_EQ(gauge.Value(), static_cast<std::int64_t>(kThreads * kRounds / 2));
  const auto read = histogram.Read();
  constexpr std::uint64_t kFifth = kThreads * kRounds / 5;
  EXPECT_THAT(read.counts, ElementsAre(2 * kFifth, 2 * kFifth, kFifth));
  EXPECT_EQ(read.sum, 10 * kFifth);
  EXPECT_EQ(read.count, 5 * kFifth);
}

TEST(Histogram, ABoundBelongsToItsOwnBucket) {
  Histogram histogram(std::array<std::uint64_t, 3>{0, 10, 20});
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{10}, std::uint64_t{11}, std::uint64_t{20},
        std::uint64_t{21}, UINT64_MAX - 62}) {
    histogram.Observe(value);
  }
  EXPECT_THAT(histogram.Read().counts, ElementsAre(1, 2, 2, 2));
  EXPECT_EQ(histogram.Read().sum, 0U);  // The sum wraps like every counter.
}

}  // namespace
}  // namespace mooncake
