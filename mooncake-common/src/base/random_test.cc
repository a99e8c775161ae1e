#include "mooncake-common/src/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace mooncake {
namespace {

// The first numbers of xoshiro256** seeded by SplitMix64 from 0, as the authors' C code gives them.
TEST(Rng, GivesTheReferenceSequence) {
  Rng rng(0);
  EXPECT_EQ(rng.Next(), 0x99ec5f36cb75f2b4U);
  EXPECT_EQ(rng.Next(), 0xbf6e1f784956452aU);
  EXPECT_EQ(rng.Next(), 0x1a5f849d4933e6e0U);
}

TEST(Rng, RepeatsFromTheSameSeedAndDiffersFromAnother) {
  Rng a(7);
  Rng b(7);
  Rng c(8);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t value = a.Next();
    EXPECT_EQ(value, b.Next());
    EXPECT_NE(value, c.Next());
  }
}

TEST(Rng, SpreadsEvenlyAndStaysInBounds) {
  Rng rng(1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70'000; ++i) {
    ++seen.at(rng.Uniform(seen.size()));
  }
  for (const int count : seen) {
    EXPECT_NEAR(count, 10'000, 500);
  }
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = rng.Between(10, 12);
    EXPECT_TRUE(value >= 10 && value <= 12) << value;
    const double unit = rng.UnitInterval();
    EXPECT_TRUE(unit >= 0 && unit < 1) << unit;
  }
  EXPECT_EQ(rng.Uniform(1), 0U);
  EXPECT_EQ(rng.Between(5, 5), 5U);
  static_cast<void>(rng.Between(0, UINT64_MAX));  // The span that does not fit into 64 bits.
}

TEST(Rng, ChanceKeepsItsOdds) {
  Rng rng(2);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    hits += rng.Chance(1, 4) ? 1 : 0;
    EXPECT_FALSE(rng.Chance(0, 100));
    EXPECT_TRUE(rng.Chance(100, 100));
  }
  EXPECT_NEAR(hits, 2500, 250);
}

TEST(Rng, TheSystemSeedsEachOneDifferently) {
  EXPECT_NE(Rng::FromOs().Next(), Rng::FromOs().Next());
}

}  // namespace
}  // namespace mooncake
