#include "mooncake-common/src/concurrency/slab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "mooncake-common/src/base/random.h"

namespace mooncake {
namespace {

using ::testing::UnorderedElementsAre;

TEST(Slab, AStaleOrForeignHandleFindsNothing) {
  Slab<int> slab;
  const auto one = slab.Insert(1);
  ASSERT_NE(slab.Find(one), nullptr);
  EXPECT_EQ(*slab.Find(one), 1);
  EXPECT_EQ(slab.Take(one), 1);
  EXPECT_EQ(slab.Take(one), std::nullopt);
  EXPECT_EQ(slab.Find(one), nullptr);
  const auto two = slab.Insert(2);
  EXPECT_EQ(static_cast<std::uint32_t>(two), static_cast<std::uint32_t>(one)) << "the same place";
  EXPECT_EQ(slab.Find(one), nullptr);
  for (const std::uint64_t foreign :
       {std::uint64_t{0}, UINT64_MAX, two + 1, two + 99, two + (std::uint64_t{1} << 32),
        two ^ (std::uint64_t{1} << 63)}) {
    EXPECT_EQ(slab.Find(foreign), nullptr) << foreign;
    EXPECT_EQ(slab.Take(foreign), std::nullopt) << foreign;
  }
  EXPECT_EQ(*slab.Find(two), 2);
}

TEST(Slab, TakingAllLeavesItEmptyAndItsHandlesStale) {
  Slab<std::unique_ptr<int>> slab;
  const auto one = slab.Insert(std::make_unique<int>(1));
  const auto gone = slab.Insert(std::make_unique<int>(2));
  slab.Insert(std::make_unique<int>(3));
  slab.Take(gone);
  const auto all = slab.TakeAll();
  EXPECT_THAT(all, UnorderedElementsAre(testing::Pointee(1), testing::Pointee(3)));
  EXPECT_EQ(slab.Find(one), nullptr);
  EXPECT_TRUE(slab.TakeAll().empty());
  const auto next = slab.Insert(std::make_unique<int>(4));
  EXPECT_LT(static_cast<std::uint32_t>(next), 3U) << "places are used again";
}

// Goal: live handles are exactly those given out and not taken, and each finds its own value.
// Method: random operations beside a plain map.
TEST(Slab, AgreesWithANaiveTwinForAnySeed) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    Slab<std::uint64_t> slab;
    std::map<std::uint64_t, std::uint64_t> live;  // Handle -> value.
    std::set<std::uint64_t> dead;
    std::size_t most = 0;
    for (int step = 0; step < 1000; ++step) {
      if (rng.Chance(11, 20)) {
        const std::uint64_t value = rng.Next();
        const auto handle = slab.Insert(value);
        ASSERT_TRUE(handle != 0 && handle >> 63 == 0);
        ASSERT_TRUE(live.emplace(handle, value).second);
        ASSERT_FALSE(dead.contains(handle));
        most = std::max(most, live.size());
        ASSERT_LT(static_cast<std::uint32_t>(handle), most);
      } else if (!live.empty()) {
        auto victim = live.begin();
        std::advance(victim, rng.Uniform(live.size()));
        ASSERT_EQ(slab.Take(victim->first), victim->second);
        dead.insert(victim->first);
        live.erase(victim);
      }
    }
    for (const auto& [handle, value] : live) {
      ASSERT_NE(slab.Find(handle), nullptr);
      EXPECT_EQ(*slab.Find(handle), value);
    }
    for (const std::uint64_t handle : dead) {
      EXPECT_EQ(slab.Find(handle), nullptr);
    }
  }
}

}  // namespace
}  // namespace mooncake
