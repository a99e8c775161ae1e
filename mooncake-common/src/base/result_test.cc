#include "mooncake-common/src/base/result.h"

#include <gtest/gtest.h>

#include <string>

namespace mooncake {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) {
    return Fail(ErrorCode::kInvalidArgument, "halve an odd number; give an even one");
  }
  return value / 2;
}

Result<int> Quarter(int value) {
  MC_TRY_ASSIGN(const int half, Half(value));
  return Half(half);
}

Result<void> BothEven(int a, int b) {
  MC_TRY(Half(a));
  MC_TRY(Half(b));
  return {};
}

TEST(Result, PassesValuesAndErrorsUp) {
  EXPECT_EQ(Quarter(8), 2);
  EXPECT_EQ(Quarter(6).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(BothEven(2, 4).has_value());
  EXPECT_FALSE(BothEven(2, 3).has_value());
}

TEST(Result, PrintsCodeAndMessage) {
  EXPECT_EQ(Half(1).error().ToString(), "INVALID_ARGUMENT: halve an odd number; give an even one");
}

TEST(ResultDeathTest, BrokenInvariantAborts) {
  EXPECT_DEATH(MC_CHECK(1 + 1 == 3), "broken invariant: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace mooncake
