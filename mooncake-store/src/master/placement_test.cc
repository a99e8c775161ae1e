#include "mooncake-store/src/master/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

class PlacementTest : public testing::Test {
 protected:
  SegmentNumber Mount(const std::string& name, std::uint64_t bytes, const std::string& host = "") {
    ++mounted_;
    const auto decision = table_.DecideMount(
        {.id = {mounted_, 1}, .name = name, .size_bytes = bytes, .host_id = host}, {9, 9},
        Instant{});
    table_.Apply(*decision.event);
    table_.Refresh(view_);
    return decision.identity.number;
  }
  std::uint32_t Try(PlaceRequest request) {
    usable_ = view_->readable;
    for (const SegmentNumber number : excluded_) {
      usable_[number] = 0;
    }
    request.usable = usable_;
    request.random = rng_.Next();
    placed_.clear();
    return Place(*view_, request, placed_);
  }
  double UsedRatio(SegmentNumber number) {
    const SpaceAllocator& space = table_.At(number)->space;
    return 1 -
           static_cast<double>(space.free_bytes()) / static_cast<double>(space.capacity_bytes());
  }
  [[nodiscard]] std::string NameOf(std::size_t index) const {
    return view_->by_number[placed_.at(index).segment]->info.name;
  }

  MasterCounters counters_;
  SegmentTable table_{counters_, 1};
  std::shared_ptr<const SegmentView> view_;
  std::vector<std::uint8_t> usable_;
  std::vector<SegmentNumber> excluded_;
  std::vector<PlacedExtent> placed_;
  Rng rng_{3};
  std::uint64_t mounted_ = 0;
};

TEST_F(PlacementTest, RandomSpreadsEvenly) {
  for (int number = 0; number < 5; ++number) {
    Mount("n" + std::to_string(number), 64 * kMiB);
  }
  std::map<std::string, int> counts;
  for (int put = 0; put < 1000; ++put) {
    ASSERT_EQ(Try({.bytes = 64}), 1U);
    ++counts[NameOf(0)];
  }
  for (const auto& [name, count] : counts) {
    EXPECT_NEAR(count, 200, 60) << name;
  }
}

TEST_F(PlacementTest, FreeRatioFirstGivesAnEmptyNodeNoMoreThanTwiceItsShare) {
  std::vector<SegmentNumber> numbers;
  for (int number = 0; number < 10; ++number) {
    numbers.push_back(Mount("n" + std::to_string(number), 64 * kMiB));
  }
  for (int number = 0; number < 9; ++number) {  // The tenth has just joined.
    ASSERT_TRUE(table_.At(numbers[number])->space.Allocate(50 * kMiB));
  }
  std::map<SegmentNumber, int> counts;
  for (int put = 0; put < 2000; ++put) {
    ASSERT_EQ(Try({.bytes = 64, .strategy = AllocationStrategy::kFreeRatioFirst}), 1U);
    ++counts[placed_[0].segment];
  }
  EXPECT_GT(counts[numbers[9]], 300);
  EXPECT_LT(counts[numbers[9]], 450);  // 200 would be its share.
}

TEST_F(PlacementTest, FreeRatioFirstFillsUnequalNodesEvenly) {
  const SegmentNumber a = Mount("a", 32 * kMiB);
  const SegmentNumber b = Mount("b", 32 * kMiB);
  const SegmentNumber c = Mount("c", 64 * kMiB);
  for (int put = 0; put < 100; ++put) {
    ASSERT_EQ(Try({.bytes = kMiB, .strategy = AllocationStrategy::kFreeRatioFirst}), 1U);
  }
  EXPECT_NEAR(UsedRatio(a), UsedRatio(c), 0.08);
  EXPECT_NEAR(UsedRatio(b), UsedRatio(c), 0.08);
}

TEST_F(PlacementTest, PreferredNamesComeFirstInTheirOrder) {
  Mount("a", 4 * kMiB);
  Mount("b", kMiB);
  Mount("c", kMiB);
  const std::vector<std::string_view> wish{"nowhere", "c", "b"};
  for (const char* expected : {"c", "b", "a"}) {
    ASSERT_EQ(Try({.bytes = kMiB, .preferred = wish}), 1U);
    EXPECT_EQ(NameOf(0), expected);
  }
}

TEST_F(PlacementTest, ReplicasNeverShareAName) {
  Mount("a", kMiB);
  Mount("a", kMiB);
  Mount("b", kMiB);
  ASSERT_EQ(Try({.bytes = 64, .replicas = 3}), 2U);
  EXPECT_NE(NameOf(0), NameOf(1));
  EXPECT_EQ(placed_[1].replica, 1);
}

TEST_F(PlacementTest, UnusableAndQuietSegmentsAreLeftOut) {
  const SegmentNumber a = Mount("a", kMiB);
  Mount("b", kMiB);
  excluded_ = {a};
  for (int put = 0; put < 20; ++put) {
    ASSERT_EQ(Try({.bytes = 64}), 1U);
    EXPECT_EQ(NameOf(0), "b");
  }
  EXPECT_EQ(UsableNames(*view_, {.usable = usable_}), 1U);
  EXPECT_FALSE(WhereRoomHelps(*view_, {.usable = usable_}, {}, false).Has(a));
  EXPECT_EQ(Try({.bytes = 64, .now = Instant(Duration(-1))}), 0U);  // Before their quiet time ends.
}

TEST_F(PlacementTest, StaysNearTheWriterWhileThereIsRoom) {
  Mount("a1", kMiB, "hostA");
  Mount("b1", kMiB, "hostB");
  Mount("b2", kMiB, "hostB");
  Mount("c1", kMiB, "hostC");
  std::vector<std::string> names;
  for (int put = 0; put < 4; ++put) {
    ASSERT_EQ(Try({.bytes = kMiB, .near_host = "hostB", .key_hash = 1}), 1U);
    names.push_back(NameOf(0));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"b2", "b1", "c1", "a1"}));
}

TEST_F(PlacementTest, WhatDoesNotFitLeavesNoTrace) {
  const SegmentNumber a = Mount("a", kMiB);
  Mount("b", kMiB);
  EXPECT_EQ(Try({.bytes = 3 * kMiB}), 0U);
  EXPECT_TRUE(placed_.empty());
  EXPECT_EQ(UsedRatio(a), 0);
  EXPECT_EQ(Try({.bytes = 2 * kMiB}), 1U);
  EXPECT_EQ(placed_.size(), 2U);
}

}  // namespace
}  // namespace mooncake::store
