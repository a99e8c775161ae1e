#include "mooncake-common/src/base/descriptor_limit.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>

namespace mooncake {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

// Puts the process's limit back at its end.
class DescriptorLimitTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  void TearDown() override { ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

  void LowerSoftLimit(rlim_t to) {
    const rlimit low{.rlim_cur = to, .rlim_max = before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }

  rlimit before_{};
};

TEST_F(DescriptorLimitTest, RaisesTheSoftLimitToTheHardOne) {
  LowerSoftLimit(64);
  EXPECT_EQ(RaiseDescriptorLimit(), before_.rlim_max);
  rlimit now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, before_.rlim_max);
  EXPECT_EQ(now.rlim_max, before_.rlim_max);
}

TEST_F(DescriptorLimitTest, SaysWhatIsShortAndOnlyThen) {
  CaptureStderr();
  PrepareDescriptorsFor(1);
  EXPECT_EQ(GetCapturedStderr(), "");
  CaptureStderr();
  PrepareDescriptorsFor(before_.rlim_max);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("raise the hard limit"));
  CaptureStderr();
  PrepareDescriptorsFor(UINT64_MAX);  // More cannot be counted.
  EXPECT_THAT(GetCapturedStderr(), HasSubstr(fmt::format("need {}", UINT64_MAX)));
}

}  // namespace
}  // namespace mooncake
