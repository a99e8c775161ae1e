#include "mooncake-common/src/net/http/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace mooncake {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(Url, SplitsIntoParts) {
  const auto url = Url::Parse("http://Meta.Example-1.com:8080/metadata?key=a%2Fb#part");
  ASSERT_TRUE(url) << url.error().ToString();
  EXPECT_FALSE(url->tls);
  EXPECT_EQ(url->host, "meta.example-1.com");
  EXPECT_EQ(url->port, 8080);
  EXPECT_EQ(url->target, "/metadata?key=a%2Fb");
  EXPECT_EQ(url->Authority(), "meta.example-1.com:8080");
}

TEST(Url, LeavesThePortOfTheSchemeOutOfTheHostHeader) {
  EXPECT_EQ(Url::Parse("http://a")->Authority(), "a");
  EXPECT_EQ(Url::Parse("https://a:443/x")->Authority(), "a");
  EXPECT_EQ(Url::Parse("https://a:80/x")->Authority(), "a:80");
  EXPECT_EQ(Url::Parse("HTTPS://a")->port, 443);
}

TEST(Url, StartsTheTargetWithASlash) {
  EXPECT_EQ(Url::Parse("http://a")->target, "/");
  EXPECT_EQ(Url::Parse("http://a?x=1")->target, "/?x=1");
  EXPECT_EQ(Url::Parse("http://a#x")->target, "/");
}

TEST(Url, TakesIpv6InBracketsWithAndWithoutZone) {
  const auto plain = Url::Parse("http://[FD00::2]:8080/m");
  ASSERT_TRUE(plain) << plain.error().ToString();
  EXPECT_EQ(plain->host, "fd00::2");
  EXPECT_EQ(plain->Authority(), "[fd00::2]:8080");
  for (const std::string_view text : {"http://[fe80::1%25eth0]/m", "http://[fe80::1%eth0]/m"}) {
    const auto zoned = Url::Parse(text);
    ASSERT_TRUE(zoned) << zoned.error().ToString();
    EXPECT_EQ(zoned->host, "fe80::1%eth0");
    EXPECT_EQ(zoned->Authority(), "[fe80::1]");
    EXPECT_EQ(zoned->ToString(), "http://[fe80::1%25eth0]:80/m");
  }
}

TEST(Url, SaysWhatIsWrong) {
  const std::vector<std::tuple<std::string_view, std::string_view>> cases = {
      {"", "http://"},
      {"127.0.0.1:8080", "http://"},
      {"ftp://a/", "http://"},
      {"http://", "host is missing"},
      {"http:///path", "host is missing"},
      {"http://a:0/", "port"},
      {"http://a:65536/", "port"},
      {"http://a:/", "port"},
      {"http://a:8x/", "port"},
      {"http://a:+8/", "port"},
      {"http://::1/", "brackets"},
      {"http://[::1/", "']'"},
      {"http://[::1]8080/", "':port'"},
      {"http://[1.2.3.4]/", "not an IPv6"},
      {"http://[::g]/", "not an IPv6"},
      {"http://[fe80::1%]/", "zone"},
      {"http://a b/", "character"},
      {"http://a\r\nX: y/", "character"},
      {"http://a/b c", "percent-encode"},
      {"http://a/b\r\nX: y", "percent-encode"},
      {"http://a/\xc3\xa4", "percent-encode"},
  };
  for (const auto& [text, why] : cases) {
    const auto url = Url::Parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(url.error().message, HasSubstr(std::string(why))) << text;
    EXPECT_THAT(url.error().message, Not(HasSubstr("\n"))) << text;
  }
}

TEST(Url, DoesNotRepeatAPassword) {
  for (const std::string_view text : {"http://user:s3cret@a/", "user:s3cret@a:80/"}) {
    const auto url = Url::Parse(text);
    ASSERT_FALSE(url);
    EXPECT_THAT(url.error().message, Not(HasSubstr("s3cret")));
  }
}

TEST(Url, PrintsWhatParsesToItself) {
  for (const std::string_view text : {"http://a", "https://[::1]:1/x?y=z", "http://1.2.3.4:5/"}) {
    const auto url = Url::Parse(text);
    ASSERT_TRUE(url);
    EXPECT_EQ(*Url::Parse(url->ToString()), *url);
  }
}

TEST(PercentEncode, KeepsOnlyUnreservedCharacters) {
  EXPECT_EQ(PercentEncode("mooncake/rpc_meta/127.0.0.1:12345"),
            "mooncake%2Frpc_meta%2F127.0.0.1%3A12345");
  EXPECT_EQ(PercentEncode("AZaz09-._~"), "AZaz09-._~");
  EXPECT_EQ(PercentEncode(" +%&=\xff"), "%20%2B%25%26%3D%FF");
}

TEST(PercentDecode, ReversesEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) {
    all += static_cast<char>(i);
  }
  EXPECT_EQ(PercentDecode(PercentEncode(all), true), all);
  EXPECT_EQ(PercentDecode("a%2fb", false), "a/b");
  EXPECT_EQ(PercentDecode("a+b", true), "a b");
  EXPECT_EQ(PercentDecode("a+b", false), "a+b");
}

TEST(PercentDecode, RefusesHalfEscapes) {
  for (const std::string_view text : {"%", "a%4", "%g0", "%0g", "%%41", "%+1", "% 1"}) {
    EXPECT_EQ(PercentDecode(text, false), std::nullopt) << text;
  }
}

TEST(RequestTarget, DecodesPathAndQuery) {
  const auto target = RequestTarget::Parse("/a%20b+c?key=x%2Fy+z&flag&key=2&=e&&%6b=%3D");
  ASSERT_TRUE(target) << target.error().ToString();
  EXPECT_EQ(target->path, "/a b+c");
  EXPECT_THAT(target->query, ElementsAre(Pair("key", "x/y z"), Pair("flag", ""), Pair("key", "2"),
                                         Pair("", "e"), Pair("k", "=")));
}

TEST(RequestTarget, TakesTheAbsoluteFormAndTheAsterisk) {
  EXPECT_EQ(RequestTarget::Parse("http://host:1/p?q=1")->path, "/p");
  EXPECT_THAT(RequestTarget::Parse("http://host?q=1")->query, ElementsAre(Pair("q", "1")));
  EXPECT_EQ(RequestTarget::Parse("http://host")->path, "/");
  EXPECT_EQ(RequestTarget::Parse("*")->path, "*");
  EXPECT_EQ(RequestTarget::Parse("/x://y")->path, "/x://y");
}

TEST(RequestTarget, RefusesWhatIsNoPath) {
  for (const std::string_view text : {"", "a", "host:443", "/%", "/a?b=%zz", "**"}) {
    const auto target = RequestTarget::Parse(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, ErrorCode::kMalformed) << text;
  }
}

TEST(WithQueryParameter, EncodesAndJoins) {
  EXPECT_EQ(WithQueryParameter("http://a/m", "key", "x/y"), "http://a/m?key=x%2Fy");
  EXPECT_EQ(WithQueryParameter("http://a/m?t=1", "key", "&"), "http://a/m?t=1&key=%26");
}

}  // namespace
}  // namespace mooncake
