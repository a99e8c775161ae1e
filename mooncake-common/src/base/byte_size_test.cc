#include "mooncake-common/src/base/byte_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

namespace mooncake {
namespace {

TEST(ByteSize, ReadsNumbersUnitsAndFractions) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {" 7 ", 7},
      {"16MB", 16 * kMiB},
      {"16 MB", 16 * kMiB},
      {"4 GB", 4 * kGiB},
      {"1.5gb", 1536 * kMiB},
      {"0.5k", 512},
      {"1.0000000001k", 1024},
      {"3355443200", 3355443200},
      {"2T", 2048 * kGiB},
      {"2tb", 2048 * kGiB},
      {"9b", 9},
      {"1.9", 1},
      {"18446744073709551615", UINT64_MAX},
      {"16777215.5t", UINT64_MAX - 512 * kGiB + 1},
  };
  for (const auto& [text, bytes] : cases) {
    const auto parsed = ParseByteSize(text);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().ToString();
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ByteSize, RejectsTheRestAndQuotesIt) {
  for (const char* bad :
       {"", " ", "50%", "-1", "+1", "mb", ".5", "1.", "1.mb", "1..5", "1e3", "16 M B", "16MiB",
        "16kbb", "1x", "18446744073709551616", "16777216t", "1.1234567890123456789", "0x10"}) {
    const auto parsed = ParseByteSize(bad);
    ASSERT_FALSE(parsed.has_value()) << bad << " gave " << *parsed;
    EXPECT_THAT(parsed.error().message, testing::HasSubstr("\"" + std::string(bad) + "\""));
  }
}

TEST(ByteSize, PrintsForPeople) {
  EXPECT_EQ(FormatByteSize(0), "0 B");
  EXPECT_EQ(FormatByteSize(1023), "1023 B");
  EXPECT_EQ(FormatByteSize(1536), "1.5 KiB");
  EXPECT_EQ(FormatByteSize(64 * kMiB), "64 MiB");
  EXPECT_EQ(FormatByteSize(UINT64_MAX), "16 EiB");
}

}  // namespace
}  // namespace mooncake
