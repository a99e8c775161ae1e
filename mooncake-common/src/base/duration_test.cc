#include "mooncake-common/src/base/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace mooncake {
namespace {

using namespace std::chrono_literals;

TEST(ParseDuration, ReadsBareNumbersInTheGivenUnitAndSuffixesInTheirs) {
  EXPECT_EQ(ParseDuration("500"), 500ms);
  EXPECT_EQ(ParseDuration("30", 1s), 30s);
  EXPECT_EQ(ParseDuration("500MS", 1s), 500ms);
  EXPECT_EQ(ParseDuration(" 10 s "), 10s);
  EXPECT_EQ(ParseDuration("2m"), 2min);
  EXPECT_EQ(ParseDuration("1H"), 1h);
  EXPECT_EQ(ParseDuration("0"), 0ms);
  EXPECT_EQ(ParseDuration("2562047h"), 2562047h);
}

TEST(ParseDuration, RejectsTheRestAndQuotesIt) {
  for (const char* bad : {"", "ms", "-1", "+5", "1.5s", "1d", "1us", "1 0s", "2562048h",
                          "9223372036854775807", "99999999999999999999"}) {
    const auto parsed = ParseDuration(bad);
    ASSERT_FALSE(parsed.has_value()) << bad;
    EXPECT_THAT(parsed.error().message, testing::HasSubstr("\"" + std::string(bad) + "\""));
  }
}

TEST(FormatDuration, UsesTheLargestUnitThatStaysWhole) {
  EXPECT_EQ(FormatDuration(0ms), "0ms");
  EXPECT_EQ(FormatDuration(7200s), "2h");
  EXPECT_EQ(FormatDuration(90s), "90s");
  EXPECT_EQ(FormatDuration(1500ms), "1500ms");
  EXPECT_EQ(FormatDuration(1500us), "1500us");
  EXPECT_EQ(FormatDuration(-10ns), "-10ns");
}

}  // namespace
}  // namespace mooncake
