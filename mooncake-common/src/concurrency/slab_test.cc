#include "mooncake-common/src/concurrency/slab.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/concurrency/executor.h"

namespace mooncake {
namespace {

TEST(Slab, GivesNoMoreThanItsCapacityAndReusesWhatCameBack) {
  Slab<int> slab(3);
  const auto a = slab.Allocate();
  const auto b = slab.Allocate();
  const auto c = slab.Allocate();
  ASSERT_TRUE(a && b && c);
  EXPECT_FALSE(slab.Allocate());
  EXPECT_TRUE(slab.Free(b.handle));
  const auto again = slab.Allocate();
  EXPECT_EQ(again.object, b.object);
  EXPECT_NE(again.handle, b.handle);
}

TEST(Slab, AStaleOrForeignHandleFindsNothing) {
  Slab<int> slab(100);
  const auto one = slab.Allocate();
  EXPECT_EQ(slab.Get(one.handle), one.object);
  EXPECT_TRUE(slab.Free(one.handle));
  EXPECT_FALSE(slab.Free(one.handle));
  EXPECT_EQ(slab.Get(one.handle), nullptr);
  const auto two = slab.Allocate();
  EXPECT_EQ(slab.Get(one.handle), nullptr);
  for (const std::uint64_t foreign :
       {std::uint64_t{0}, UINT64_MAX, two.handle + 1, two.handle + 99, two.handle + 100,
        two.handle + (std::uint64_t{2} << 32), two.handle ^ (std::uint64_t{1} << 32)}) {
    EXPECT_EQ(slab.Get(foreign), nullptr) << foreign;
    EXPECT_FALSE(slab.Free(foreign)) << foreign;
  }
  EXPECT_EQ(slab.Get(two.handle), two.object);
}

TEST(Slab, AnObjectKeepsItsStorageBetweenUses) {
  Slab<std::vector<int>> slab(1);
  auto first = slab.Allocate();
  first.object->resize(1000);
  const int* const storage = first.object->data();
  first.object->clear();
  slab.Free(first.handle);
  auto second = slab.Allocate();
  second.object->resize(1000);
  EXPECT_EQ(second.object->data(), storage);
}

// Goal: live handles are exactly those given out and not freed, and each finds its own object.
// Method: random operations beside a plain map.
TEST(Slab, AgreesWithANaiveTwinForAnySeed) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    const auto capacity = static_cast<std::uint32_t>(rng.Between(1, 200));
    Slab<std::uint64_t> slab(capacity);
    std::map<std::uint64_t, std::uint64_t> live;  // Handle -> value.
    std::set<std::uint64_t> dead;
    for (int step = 0; step < 1000; ++step) {
      if (rng.Chance(11, 20)) {
        const auto allocation = slab.Allocate();
        ASSERT_EQ(static_cast<bool>(allocation), live.size() < capacity);
        if (allocation) {
          ASSERT_TRUE(allocation.handle != 0 && allocation.handle != UINT64_MAX);
          *allocation.object = rng.Next();
          ASSERT_TRUE(live.emplace(allocation.handle, *allocation.object).second);
          ASSERT_FALSE(dead.contains(allocation.handle));
        }
      } else if (!live.empty()) {
        auto victim = live.begin();
        std::advance(victim, rng.Uniform(live.size()));
        ASSERT_TRUE(slab.Free(victim->first));
        dead.insert(victim->first);
        live.erase(victim);
      }
    }
    for (const auto& [handle, value] : live) {
      ASSERT_NE(slab.Get(handle), nullptr);
      EXPECT_EQ(*slab.Get(handle), value);
    }
    for (const std::uint64_t handle : dead) {
      EXPECT_EQ(slab.Get(handle), nullptr);
    }
  }
}

TEST(Slab, ThreadsNeverShareAnObject) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 5000;
  Slab<std::atomic<int>> slab(kThreads * 3);
  std::atomic<int> clashes = 0;
  {
    std::array<Thread, kThreads> threads;
    for (int t = 0; t < kThreads; ++t) {
      auto started = Thread::Start("slab", [&slab, &clashes, t] {
        std::array<Slab<std::atomic<int>>::Allocation, 3> held{};
        for (int i = 0; i < kRounds; ++i) {
          for (auto& one : held) {
            one = slab.Allocate();
            // There are three places a thread, so it must find one.
            if (!one || one.object->exchange(t + 1) != 0) {
              ++clashes;
            }
          }
          for (const auto& one : held) {
            if (one.object->exchange(0) != t + 1 || !slab.Free(one.handle)) {
              ++clashes;
            }
          }
        }
      });
      ASSERT_TRUE(started.has_value());
      threads.at(t) = std::move(*started);
    }
  }
  EXPECT_EQ(clashes, 0);
}

TEST(Slab, OfTwoThreadsThatFreeTheSameHandleOneWins) {
  Slab<int> slab(64);
  for (int round = 0; round < 200; ++round) {
    const auto one = slab.Allocate();
    std::atomic<int> freed = 0;
    auto other = Thread::Start("free", [&] { freed += slab.Free(one.handle) ? 1 : 0; });
    ASSERT_TRUE(other.has_value());
    freed += slab.Free(one.handle) ? 1 : 0;
    other->Join();
    ASSERT_EQ(freed, 1);
  }
}

}  // namespace
}  // namespace mooncake
