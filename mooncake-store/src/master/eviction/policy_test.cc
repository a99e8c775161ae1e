#include "mooncake-store/src/master/eviction/policy.h"

#include <gtest/gtest.h>

namespace mooncake::store {
namespace {

SegmentMask Of(std::initializer_list<SegmentNumber> numbers) {
  SegmentMask mask;
  for (const SegmentNumber number : numbers) {
    mask.Add(number);
  }
  return mask;
}

TEST(SegmentMask, HasAllAsksForEachNumberOfTheOther) {
  EXPECT_TRUE(Of({}).HasAll(Of({})));
  EXPECT_TRUE(Of({1, 200}).HasAll(Of({})));
  EXPECT_TRUE(Of({1, 63, 64, 200}).HasAll(Of({1, 64})));
  EXPECT_FALSE(Of({1, 64}).HasAll(Of({1, 63})));
  EXPECT_FALSE(Of({1}).HasAll(Of({1, 200}))) << "beyond the words that the mask has";
}

TEST(SegmentMask, TakesInAnotherMaskLongerOrShorter) {
  SegmentMask mask = Of({3});
  mask.Add(Of({1, 200}));
  mask.Add(Of({64}));
  EXPECT_TRUE(mask.HasAll(Of({1, 3, 64, 200})));
  EXPECT_FALSE(mask.Has(2));
  EXPECT_FALSE(mask.Has(201));
}

}  // namespace
}  // namespace mooncake::store
