#include "mooncake-common/src/base/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mooncake {
namespace {

using ::testing::HasSubstr;

struct Good {
  std::string_view text;
  std::string_view host;
  std::optional<std::uint16_t> port;
  std::string_view printed;
};

TEST(Address, ReadsEveryFormAndPrintsTheOneThatNeedsNoGuessing) {
  const Good cases[] = {
      {"localhost", "localhost", {}, "localhost"},
      {"localhost:7777", "localhost", 7777, "localhost:7777"},
      {"127.0.0.1:0", "127.0.0.1", 0, "127.0.0.1:0"},
      {"node-1.rack_2.example:65535", "node-1.rack_2.example", 65535,
       "node-1.rack_2.example:65535"},
      {"::1", "::1", {}, "[::1]"},
      {"[::1]", "::1", {}, "[::1]"},
      {"[::1]:0", "::1", 0, "[::1]:0"},
      {"fd00::2", "fd00::2", {}, "[fd00::2]"},
      {"fe80::1%eth0", "fe80::1%eth0", {}, "[fe80::1%eth0]"},
      {"[fe80::1%eth0.12]:17812", "fe80::1%eth0.12", 17812, "[fe80::1%eth0.12]:17812"},
      {"::ffff:10.0.0.1", "::ffff:10.0.0.1", {}, "[::ffff:10.0.0.1]"},
      // Nothing but "::12" being a whole address says that 12 is no port; so it is none.
      {"::12", "::12", {}, "[::12]"},
      {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", {}, "[1:2:3:4:5:6:7:8]"},
  };
  for (const Good& good : cases) {
    SCOPED_TRACE(good.text);
    const auto parsed = ParseHostPort(good.text);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().ToString();
    EXPECT_EQ(parsed->host, good.host);
    EXPECT_EQ(parsed->port, good.port);
    EXPECT_EQ(parsed->ToString(), good.printed);
    EXPECT_EQ(ParseHostPort(parsed->ToString()), *parsed);
  }
}

TEST(Address, RejectsMalformedTextAndQuotesIt) {
  for (const char* bad : {"",
                          ":",
                          ":80",
                          "host:",
                          "host:65536",
                          "host:-1",
                          "host:+1",
                          "host: 1",
                          "host:http",
                          "[::1",
                          "::1]:x",
                          "::1]",
                          "[::1]x",
                          "[::1]:",
                          "[::1]:65536",
                          "[]",
                          "[]:80",
                          "[localhost]:80",
                          "[127.0.0.1]:80",
                          "[[::1]]:80",
                          "1:2:3",
                          "g::b:80",
                          "1:2:3:4:5:6:7:8:9",
                          "fe80::1%",
                          "fe80::1%a b",
                          "fe80::1%averyveryverylongname",
                          "ho st",
                          "host/path",
                          "user@host",
                          "h%C3",
                          "256.0.0.1:1",
                          "1.2.3.4.:1:1",
                          "http://host:80"}) {
    const auto parsed = ParseHostPort(bad);
    ASSERT_FALSE(parsed.has_value()) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, HasSubstr("\"" + std::string(bad) + "\""));
  }
  EXPECT_FALSE(ParseHostPort(std::string_view("::1\0x", 5)).has_value());
  EXPECT_FALSE(ParseHostPort(std::string_view("[::1\0]:80", 9)).has_value());
  EXPECT_FALSE(ParseHostPort(std::string(254, 'a')).has_value());
}

TEST(Address, KnowsLoopbackAndWildcard) {
  for (const char* loopback :
       {"127.0.0.1", "127.8.9.1", "::1", "0:0:0:0:0:0:0:1", "LOCALHOST", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(IsLoopbackHost(loopback)) << loopback;
  }
  for (const char* other : {"", "10.0.0.1", "127.0.0.1.example", "::2", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(IsLoopbackHost(other)) << other;
  }
  EXPECT_TRUE(IsWildcardHost("0.0.0.0"));
  EXPECT_TRUE(IsWildcardHost("::"));
  EXPECT_FALSE(IsWildcardHost("10.0.0.0"));
  EXPECT_FALSE(IsWildcardHost("::1"));
}

}  // namespace
}  // namespace mooncake
