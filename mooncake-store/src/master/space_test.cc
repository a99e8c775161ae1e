#include "mooncake-store/src/master/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

// A segment as one flag a unit: slow and obviously right.
class NaiveSpace {
 public:
  explicit NaiveSpace(std::uint64_t bytes) : used_(bytes / kSpaceUnitBytes, false) {}

  [[nodiscard]] bool Take(SpaceRange range) { return Flip(range, true); }
  [[nodiscard]] bool Give(SpaceRange range) { return Flip(range, false); }

  [[nodiscard]] std::vector<SpaceRange> FreeRanges() const {
    std::vector<SpaceRange> ranges;
    for (std::size_t at = 0; at < used_.size(); ++at) {
      if (used_[at]) {
        continue;
      }
      if (ranges.empty() ||
          ranges.back().offset_bytes + ranges.back().length_bytes != at * kSpaceUnitBytes) {
        ranges.push_back({at * kSpaceUnitBytes, 0});
      }
      ranges.back().length_bytes += kSpaceUnitBytes;
    }
    return ranges;
  }

 private:
  bool Flip(SpaceRange range, bool to) {
    if (range.offset_bytes % kSpaceUnitBytes != 0) {
      return false;
    }
    for (std::uint64_t at = range.offset_bytes / kSpaceUnitBytes;
         at * kSpaceUnitBytes < range.offset_bytes + range.length_bytes; ++at) {
      if (at >= used_.size() || used_[at] == to) {
        return false;
      }
      used_[at] = to;
    }
    return true;
  }

  std::vector<bool> used_;
};

std::uint64_t Sum(const std::vector<SpaceRange>& ranges) {
  return std::accumulate(
      ranges.begin(), ranges.end(), std::uint64_t{0},
      [](std::uint64_t sum, const SpaceRange& range) { return sum + range.length_bytes; });
}

std::uint64_t Longest(const std::vector<SpaceRange>& ranges) {
  std::uint64_t longest = 0;
  for (const SpaceRange& range : ranges) {
    longest = std::max(longest, range.length_bytes);
  }
  return longest;
}

// Goal: what is free equals a bitmap's opinion after each operation, and an allocation fails only
// when it must. Method: many seeds, mixed lengths, every kind of operation.
TEST(SpaceAllocator, EqualsANaiveBitmapForAnySeed) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    const std::uint64_t size = rng.Between(1, 300) * kSpaceUnitBytes + rng.Uniform(kSpaceUnitBytes);
    SpaceAllocator space(size);
    NaiveSpace twin(size);
    std::vector<SpaceRange> held;
    for (int step = 0; step < 300; ++step) {
      SCOPED_TRACE(testing::Message() << "step=" << step);
      const std::uint64_t bytes = rng.Between(1, rng.Chance(1, 4) ? 4000 : 400);
      const std::vector<SpaceRange> before = twin.FreeRanges();
      switch (rng.Uniform(5)) {
        case 0:
        case 1: {
          const auto range = space.Allocate(bytes);
          ASSERT_EQ(range.has_value(), Longest(before) >= RoundUpToSpaceUnits(bytes));
          if (range) {
            ASSERT_EQ(range->length_bytes, bytes);
            ASSERT_TRUE(twin.Take(*range));
            held.push_back(*range);
          }
          break;
        }
        case 2: {
          std::vector<SpaceRange> ranges;
          const std::size_t most = rng.Between(1, 20);
          const bool done = space.AllocateScattered(bytes, most, ranges);
          if (done) {
            ASSERT_LE(ranges.size(), most);
            ASSERT_EQ(Sum(ranges), bytes);
            for (const SpaceRange& range : ranges) {
              ASSERT_TRUE(twin.Take(range));
              held.push_back(range);
            }
          } else {
            ASSERT_TRUE(ranges.empty());
            ASSERT_TRUE(Sum(before) < RoundUpToSpaceUnits(bytes) || before.size() > most);
          }
          break;
        }
        case 3: {
          const SpaceRange wish{rng.Uniform(size) / kSpaceUnitBytes * kSpaceUnitBytes, bytes};
          const bool fits = std::ranges::any_of(before, [&](const SpaceRange& range) {
            return range.offset_bytes <= wish.offset_bytes &&
                   wish.offset_bytes + RoundUpToSpaceUnits(bytes) <=
                       range.offset_bytes + range.length_bytes;
          });
          ASSERT_EQ(space.Reserve(wish), fits);
          if (fits) {
            ASSERT_TRUE(twin.Take(wish));
            held.push_back(wish);
          }
          break;
        }
        default:
          for (std::uint64_t count = rng.Uniform(6); count > 0 && !held.empty(); --count) {
            std::swap(held[rng.Uniform(held.size())], held.back());
            ASSERT_TRUE(twin.Give(held.back()));
            space.Free(std::span(&held.back(), 1));
            held.pop_back();
          }
      }
      ASSERT_EQ(space.FreeRanges(), twin.FreeRanges());
      ASSERT_EQ(space.free_bytes(), Sum(twin.FreeRanges()));
    }
    space.Free(held);
    ASSERT_EQ(space.free_bytes(), space.capacity_bytes());
    ASSERT_LE(space.FreeRanges().size(), 1U);
  }
}

TEST(SpaceAllocator, HoldsExactlyAsManyPagesAsTheSegmentHas) {
  for (const std::uint64_t pages : {1, 2, 3, 7, 256, 4097}) {
    SpaceAllocator space(pages * 4096);
    std::vector<SpaceRange> held;
    while (const auto range = space.Allocate(4096)) {
      EXPECT_EQ(range->offset_bytes % kSpaceUnitBytes, 0U);
      held.push_back(*range);
    }
    EXPECT_EQ(held.size(), pages);
    EXPECT_EQ(space.free_bytes(), 0U);
    space.Free(held);
    EXPECT_TRUE(space.Allocate(pages * 4096));
  }
}

TEST(SpaceAllocator, ServesALargeObjectFromScatteredHoles) {
  SpaceAllocator space(std::uint64_t{64} * 4096);
  std::vector<SpaceRange> held;
  while (const auto range = space.Allocate(4096)) {
    held.push_back(*range);
  }
  for (std::size_t at = 0; at < held.size(); at += 2) {
    space.Free(std::span(&held[at], 1));
  }
  EXPECT_FALSE(space.Allocate(8192));
  std::vector<SpaceRange> ranges;
  EXPECT_FALSE(space.AllocateScattered(std::uint64_t{32} * 4096, 31, ranges));
  ASSERT_TRUE(space.AllocateScattered(std::uint64_t{32} * 4096 - 100, 32, ranges));
  EXPECT_EQ(Sum(ranges), std::uint64_t{32} * 4096 - 100U);
  EXPECT_EQ(space.free_bytes(), kSpaceUnitBytes);  // Of the 100 bytes, one unit is whole.
}

TEST(SpaceAllocator, GivesMemoryBackWhenHolesCloseUp) {
  SpaceAllocator space(std::uint64_t{200000} * 64);
  std::vector<SpaceRange> odd;
  std::vector<SpaceRange> even;
  while (const auto range = space.Allocate(64)) {
    (odd.size() > even.size() ? even : odd).push_back(*range);
  }
  space.Free(odd);
  const std::size_t fragmented = space.memory_bytes();
  EXPECT_LE(fragmented, 100000U * 80);
  space.Free(even);
  EXPECT_LT(space.memory_bytes(), 1U << 20U);
  EXPECT_EQ(space.FreeRanges().size(), 1U);
}

TEST(SpaceAllocator, ThreadsNeverGetTheSameRange) {
  SpaceAllocator space(1U << 20U);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&space, seed] {
      Rng rng(seed);
      std::vector<SpaceRange> held;
      for (int step = 0; step < 4000; ++step) {
        if (held.size() < 64 && rng.Chance(1, 2)) {
          if (const auto range = space.Allocate(rng.Between(1, 8192))) {
            held.push_back(*range);
          }
        } else if (!held.empty()) {
          space.Free(std::span(&held.back(), 1));
          held.pop_back();
        }
      }
      space.Free(held);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(space.free_bytes(), space.capacity_bytes());  // A range given twice trips Free().
}

}  // namespace
}  // namespace mooncake::store
