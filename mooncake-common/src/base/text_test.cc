#include "mooncake-common/src/base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace mooncake {
namespace {

TEST(Text, TrimsBothEnds) {
  EXPECT_EQ(TrimAscii("  a b\t\n"), "a b");
  EXPECT_EQ(TrimAscii(" \t "), "");
  EXPECT_EQ(TrimAscii(""), "");
}

TEST(Text, ReadsBooleansInAnyCaseAndNothingElse) {
  for (const char* on : {"1", "true", "YES", " on ", "Enable"}) {
    EXPECT_EQ(ParseBool(on), true) << on;
  }
  for (const char* off : {"0", "False", "no", "OFF", "disable\n"}) {
    EXPECT_EQ(ParseBool(off), false) << off;
  }
  for (const char* neither : {"", " ", "2", "y", "tru", "true false"}) {
    EXPECT_EQ(ParseBool(neither), std::nullopt) << neither;
  }
}

TEST(Text, ReadsIntegersWholeOrNotAtAll) {
  EXPECT_EQ(ParseInteger<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(ParseInteger<std::int64_t>("-9223372036854775808"), INT64_MIN);
  for (const char* bad : {"", "65536", "-1", "+1", " 1", "1 ", "1x", "0x1"}) {
    EXPECT_EQ(ParseInteger<std::uint16_t>(bad), std::nullopt) << bad;
  }
}

TEST(Text, QuotesWithoutLettingControlBytesThrough) {
  EXPECT_EQ(Quote("a\"b\\c\n\xff"), "\"a\\\"b\\\\c\\x0a\\xff\"");
  EXPECT_EQ(Quote(std::string(200, 'x')), "\"" + std::string(128, 'x') + "\"... (200 bytes)");
}

}  // namespace
}  // namespace mooncake
