#include "mooncake-store/src/master/eviction/hdi/hazards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace mooncake::store {
namespace {

TEST(Reuse, AgesFallIntoOctavesAndGapsIntoQuarters) {
  EXPECT_EQ(BucketOf(0), 0U);
  EXPECT_EQ(BucketOf(1), 1U);
  EXPECT_EQ(BucketOf(2), 2U);
  EXPECT_EQ(BucketOf(3), 2U);
  EXPECT_EQ(BucketOf(4), 3U);
  EXPECT_EQ(BucketOf(0xffffffff), kAgeBuckets - 1);
  EXPECT_EQ(QuarterOctaves(0), -24);
  for (std::uint32_t ticks = 1; ticks < 70000; ++ticks) {
    ASSERT_EQ(QuarterOctaves(ticks), static_cast<int>(std::floor(4 * std::log2(ticks)))) << ticks;
  }
}

TEST(Reuse, EveryClassIsOneNumberInItsGroup) {
  std::set<unsigned> seen{kLastOfChainClass};
  for (const std::uint32_t length : {8U, 24U, 64U, 65U}) {
    for (const std::uint32_t known : {0U, length / 4, length * 3 / 5, length - 1}) {
      seen.insert(FirstUseClass(known, length, false));
    }
  }
  EXPECT_EQ(seen.size(), 17U);
  EXPECT_EQ(FirstUseClass(0, 5, true), kLastOfChainClass);
  for (unsigned count = 2; count <= 255; ++count) {
    for (int gap = -24; gap <= 127; ++gap) {
      const std::uint8_t cls = ReuseClass(count, gap);
      ASSERT_LT(cls, kReuseClasses);
      ASSERT_EQ(GroupOfClass(cls), count <= 4 ? count : count <= 7 ? 5U : 6U);
      seen.insert(cls);
    }
  }
  EXPECT_EQ(seen.size(), kReuseClasses);
}

TEST(Hazards, WaitingIsSplitAtTheBucketsEnds) {
  // One class waits from 3 to 20 in one piece, another in two: they come out equal.
  Hazards hazards;
  hazards.AddWait(20, 1, 3, 20);
  hazards.AddWait(21, 1, 3, 9);
  hazards.AddWait(21, 1, 9, 20);
  hazards.AddHit(20, 1, 20);
  hazards.AddHit(21, 1, 20);
  hazards.Fit();
  for (const std::uint32_t age : {0U, 3U, 8U, 20U, 100U}) {
    EXPECT_EQ(hazards.Worth(20, age), hazards.Worth(21, age)) << age;
  }
}

TEST(Hazards, TheOftenHitAreWorthMore) {
  Hazards hazards;
  for (int block = 0; block < 10000; ++block) {
    hazards.AddWait(3, 1, 0, 100);
    hazards.AddWait(30, 1, 0, 100);
    if (block % 10 == 0) {
      hazards.AddHit(30, 1, 50);
    }
  }
  hazards.Fit();
  EXPECT_GT(hazards.Worth(30, 10), 5 * hazards.Worth(3, 10));
  EXPECT_GT(hazards.Worth(30, 10), 0);
}

TEST(Hazards, TheWorthOfWhatReturnsAfterAPauseRisesUntilThen) {
  Hazards hazards;
  for (int block = 0; block < 10000; ++block) {
    hazards.AddWait(25, 1, 0, 90);  // All return at the age of 90.
    hazards.AddHit(25, 1, 90);
  }
  hazards.Fit();
  EXPECT_GT(hazards.Worth(25, 60), 1.5F * hazards.Worth(25, 1));
  EXPECT_GT(hazards.Worth(25, 60), 5 * hazards.Worth(25, 1000));  // The moment has passed.
}

TEST(Hazards, WhatIsLongAgoIsForgotten) {
  Hazards hazards;
  for (int block = 0; block < 10000; ++block) {
    hazards.AddWait(25, 1, 0, 90);
    hazards.AddHit(25, 1, 90);
  }
  hazards.Fit();
  const float before = hazards.Worth(25, 60);
  hazards.Forget(1e-9);
  hazards.Fit();
  EXPECT_LT(hazards.Worth(25, 60), before / 100);
}

}  // namespace
}  // namespace mooncake::store
