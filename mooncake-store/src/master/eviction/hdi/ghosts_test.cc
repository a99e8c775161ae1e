#include "mooncake-store/src/master/eviction/hdi/ghosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

// Goal: finds what a plain queue finds, also while its ids wrap around, whatever is added, hit and
// trimmed. Method: many seeds beside a queue of hashes.
TEST(Ghosts, AreAQueueWithAnIndexForAnySeed) {
  struct Twin {
    std::uint64_t hash;
    std::uint8_t count;  // 0: hit.
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    Hazards hazards;
    const auto first = static_cast<Ghosts::Id>(rng.Chance(1, 2) ? 0 - rng.Uniform(6000) : 0);
    Ghosts ghosts(hazards, first);
    std::deque<Twin> twin;
    std::uint32_t now = 0;
    std::uint32_t added = 0;
    constexpr std::size_t kLimit = 900;
    for (int step = 0; step < 8000; ++step) {
      now += static_cast<std::uint32_t>(rng.Uniform(2));
      const std::uint64_t hash = rng.Uniform(2000) * 0x9e3779b97f4a7c15;
      const auto known = std::ranges::find_if(
          twin, [&](const Twin& each) { return each.hash == hash && each.count != 0; });
      const Ghosts::Id id = ghosts.Find(hash);
      ASSERT_EQ(id != Ghosts::kNone, known != twin.end());
      if (id != Ghosts::kNone) {
        ASSERT_EQ(ghosts.At(id).reuse.count, known->count);
        if (rng.Chance(1, 2)) {
          ghosts.Hit(id, now);
          known->count = 0;
        }
      } else {
        const auto count = static_cast<std::uint8_t>(rng.Between(1, 255));
        ghosts.Add(hash, now, {.count = count}, 8, kLimit);
        while (twin.size() >= kLimit) {
          twin.pop_front();
        }
        if (static_cast<Ghosts::Id>(first + added) == Ghosts::kNone) {
          twin.push_back({0, 0});
          ++added;
        }
        twin.push_back({hash, count});
        ++added;
      }
      ghosts.Expose(rng.Uniform(20), now);
      ASSERT_EQ(ghosts.size(), twin.size());
    }
  }
}

TEST(Ghosts, AreGivenBackWhenTheLimitFalls) {
  Hazards hazards;
  Ghosts ghosts(hazards);
  for (std::uint64_t number = 0; number < 20000; ++number) {
    ghosts.Add(number * 77777777777, 1, {}, 8, 20000);
  }
  EXPECT_EQ(ghosts.size(), 20000U);
  for (int call = 0; call < 10000; ++call) {
    ghosts.Trim(2, 8000);
  }
  EXPECT_EQ(ghosts.size(), 9000U);
  EXPECT_EQ(ghosts.Find(5 * 77777777777), Ghosts::kNone);
  EXPECT_NE(ghosts.Find(19999 * 77777777777), Ghosts::kNone);
}

// Goal: each ghost's waiting is told in whole, once, whether by the hand, a hit or its end. Method:
// the same ghosts told in different ways give equal worths.
TEST(Ghosts, TellAllTheirWaitingOnce) {
  Hazards by_hand;
  Hazards by_hit;
  Ghosts hand(by_hand);
  Ghosts hit(by_hit);
  for (std::uint64_t number = 0; number < 1000; ++number) {
    hand.Add(number << 20U | number, 0, {.cls = 40}, 4, 2000);
    hit.Add(number << 20U | number, 0, {.cls = 40}, 4, 2000);
  }
  for (std::uint32_t now = 1; now < 300; now += 7) {
    hand.Expose(517, now);
  }
  for (std::uint64_t number = 0; number < 1000; ++number) {
    hand.Hit(hand.Find(number << 20U | number), 300);
    hit.Hit(hit.Find(number << 20U | number), 300);
  }
  by_hand.Fit();
  by_hit.Fit();
  for (const std::uint32_t age : {0U, 10U, 100U, 290U, 400U}) {
    EXPECT_FLOAT_EQ(by_hand.Worth(40, age), by_hit.Worth(40, age)) << age;
  }
}

}  // namespace
}  // namespace mooncake::store
