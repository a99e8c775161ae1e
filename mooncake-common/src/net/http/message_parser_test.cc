#include "mooncake-common/src/net/http/message_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace mooncake {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr HttpLimits kLimits{.header_bytes = 1024, .body_bytes = 64};

constexpr std::string_view kPut =
    "PUT /metadata?key=mooncake%2Frpc_meta%2F127.0.0.1%3A12345 HTTP/1.1\r\n"
    "Host: 127.0.0.1:8080\r\nAccept: */*\r\nContent-Type: application/json\r\n"
    "Content-Length: 48\r\n\r\n{\"ip_or_host_name\":\"192.0.2.2\",\"rpc_port\":16044}";

constexpr std::string_view kChunked =
    "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: t\r\n\r\n";

// The state after all bytes, and the request if complete.
struct Parsed {
  ParseState state = ParseState::kNeedMore;
  std::optional<Result<HttpRequest>> request;
  std::size_t consumed_bytes = 0;
};

Parsed ParseInPieces(std::string_view bytes, std::size_t piece_bytes,
                     const HttpLimits& limits = kLimits) {
  RequestParser parser(limits);
  Parsed parsed;
  while (!bytes.empty() && parsed.state == ParseState::kNeedMore) {
    const ParseProgress progress = parser.Feed(bytes.substr(0, piece_bytes));
    bytes.remove_prefix(progress.consumed_bytes);
    parsed.consumed_bytes += progress.consumed_bytes;
    parsed.state = progress.state;
  }
  if (parsed.state == ParseState::kComplete) {
    parsed.request = parser.Take();
  }
  return parsed;
}

TEST(RequestParser, ReadsARequestInPiecesOfAnySize) {
  for (std::size_t piece_bytes = 1; piece_bytes <= kPut.size(); ++piece_bytes) {
    const Parsed parsed = ParseInPieces(kPut, piece_bytes);
    ASSERT_EQ(parsed.state, ParseState::kComplete) << piece_bytes;
    ASSERT_TRUE(*parsed.request) << piece_bytes;
    const HttpRequest& request = **parsed.request;
    EXPECT_EQ(request.method, "PUT");
    EXPECT_EQ(request.path, "/metadata");
    EXPECT_EQ(request.Query("key"), "mooncake/rpc_meta/127.0.0.1:12345");
    EXPECT_EQ(request.Query("nosuch"), std::nullopt);
    EXPECT_EQ(request.Header("content-TYPE"), "application/json");
    EXPECT_EQ(request.body, R"({"ip_or_host_name":"192.0.2.2","rpc_port":16044})");
  }
}

TEST(RequestParser, ReadsChunksInPiecesOfAnySize) {
  for (std::size_t piece_bytes = 1; piece_bytes <= kChunked.size(); ++piece_bytes) {
    const Parsed parsed = ParseInPieces(kChunked, piece_bytes);
    ASSERT_EQ(parsed.state, ParseState::kComplete) << piece_bytes;
    EXPECT_EQ((*parsed.request)->body, "hello world") << piece_bytes;
  }
}

TEST(RequestParser, LeavesWhatFollowsToTheNextRequest) {
  const std::string two = std::string(kPut) + "GET /next HTTP/1.1\r\n";
  for (const std::size_t piece_bytes : {1, 7, 50, 1000}) {
    EXPECT_EQ(ParseInPieces(two, piece_bytes).consumed_bytes, kPut.size());
  }
}

TEST(RequestParser, NeedsAllBytes) {
  for (const std::string_view text : {kPut, kChunked}) {
    for (std::size_t length = 0; length < text.size(); ++length) {
      EXPECT_EQ(ParseInPieces(text.substr(0, length), 1000).state, ParseState::kNeedMore) << length;
    }
  }
}

TEST(RequestParser, RefusesWhatCouldBeReadInTwoWays) {
  for (const std::string_view fields :
       {"Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: 3, 4\r\n",
        "Content-Length: -1\r\n", "Content-Length: +3\r\n", "Content-Length: 0x3\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, gzip\r\n", "Name : value\r\n",
        "No colon\r\n", "A: b\rc\r\n", "A: b\nc: d\r\n"}) {
    SCOPED_TRACE(fields);
    const std::string text = "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\nabcd";
    for (const std::size_t piece_bytes : {1, 1000}) {
      const Parsed parsed = ParseInPieces(text, piece_bytes);
      EXPECT_TRUE(parsed.state == ParseState::kMalformed ||
                  (parsed.state == ParseState::kComplete && !*parsed.request));
    }
  }
}

TEST(RequestParser, RefusesWhatIsNoRequestLine) {
  for (const std::string_view line :
       {"\r\n", "GET\r\n", "GET /\r\n", "GET / HTTP/2.0\r\n", "GET / HTTP/0.9\r\n",
        "GET / http/1.1\r\n", "GET  / HTTP/1.1\r\n", "GET /a b HTTP/1.1\r\n", "G(T / HTTP/1.1\r\n",
        "\x16\x03\x01\x02", "PRI * HTTP/2.0\r\n", "GET /\x01 HTTP/1.1\r\n"}) {
    EXPECT_EQ(ParseInPieces(std::string(line) + "\r\n\r\n", 1000).state, ParseState::kMalformed)
        << line;
  }
}

TEST(RequestParser, RefusesATargetThatDoesNotDecode) {
  const Parsed parsed = ParseInPieces("GET /%zz HTTP/1.1\r\n\r\n", 1000);
  ASSERT_EQ(parsed.state, ParseState::kComplete);
  ASSERT_FALSE(*parsed.request);
  EXPECT_EQ(parsed.request->error().code, ErrorCode::kMalformed);
}

TEST(RequestParser, BoundsTheHeaderHoweverItIsCutAndBuilt) {
  const std::string one_field = "GET / HTTP/1.1\r\nA: " + std::string(2000, 'x') + "\r\n\r\n";
  const std::string long_target = "GET /" + std::string(2000, 'x') + " HTTP/1.1\r\n\r\n";
  const std::string endless = "GET /" + std::string(2000, 'x');
  std::string many_fields = "GET /ab HTTP/1.1\r\n";  // 18 bytes, as is each field.
  for (int i = 0; i < 400; ++i) {
    many_fields += "A: 1234567890123\r\n";
  }
  for (const std::string& text : {one_field, long_target, endless, many_fields}) {
    // Of 18 bytes each piece of the last text ends with a field, so that nothing is left over.
    for (const std::size_t piece_bytes : {1, 2, 18, 100, 5000}) {
      const Parsed parsed = ParseInPieces(text, piece_bytes);
      EXPECT_EQ(parsed.state, ParseState::kHeaderTooLarge) << piece_bytes;
      EXPECT_LE(parsed.consumed_bytes, kLimits.header_bytes + piece_bytes) << piece_bytes;
    }
  }
}

TEST(RequestParser, TakesAHeaderJustBelowItsLimit) {
  const std::string start = "GET / HTTP/1.1\r\nA: ";
  const std::string text =
      start + std::string(kLimits.header_bytes - start.size() - 4, 'x') + "\r\n\r\n";
  for (const std::size_t piece_bytes : {1, 100, 5000}) {
    EXPECT_EQ(ParseInPieces(text, piece_bytes).state, ParseState::kComplete) << piece_bytes;
  }
}

TEST(RequestParser, RefusesALargeBodyBeforeItComes) {
  const Parsed parsed = ParseInPieces("PUT / HTTP/1.1\r\nContent-Length: 65\r\n\r\n", 1000);
  EXPECT_EQ(parsed.state, ParseState::kBodyTooLarge);
  EXPECT_EQ(ParseInPieces("PUT / HTTP/1.1\r\nContent-Length: 64\r\n\r\n", 1000).state,
            ParseState::kNeedMore);
}

TEST(RequestParser, BoundsAChunkedBody) {
  const std::string header = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string chunk = "21\r\n" + std::string(33, 'x') + "\r\n";
  EXPECT_EQ(ParseInPieces(header + chunk + chunk, 1000).state, ParseState::kBodyTooLarge);
  EXPECT_EQ(ParseInPieces(header + "ffffffffffffffff\r\n", 1000).state, ParseState::kBodyTooLarge);
  EXPECT_EQ(ParseInPieces(header + "fffffffffffffffff\r\n", 1000).state, ParseState::kMalformed);
  EXPECT_EQ(ParseInPieces(header + "1;" + std::string(3000, 'x'), 100).state,
            ParseState::kHeaderTooLarge);
  EXPECT_EQ(ParseInPieces(header + "0\r\nA: " + std::string(3000, 'x'), 100).state,
            ParseState::kHeaderTooLarge);
  EXPECT_EQ(ParseInPieces(header + "5\r\nhelloX\r\n0\r\n\r\n", 1000).state, ParseState::kMalformed);
}

TEST(RequestParser, TellsOnceThatTheClientWaitsToSendItsBody) {
  RequestParser parser(kLimits);
  EXPECT_FALSE(parser.TakeExpectContinue());
  const ParseProgress header =
      parser.Feed("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  ASSERT_EQ(header.state, ParseState::kNeedMore);
  EXPECT_TRUE(parser.TakeExpectContinue());
  EXPECT_FALSE(parser.TakeExpectContinue());
  EXPECT_EQ(parser.Feed("ab").state, ParseState::kComplete);
}

TEST(RequestParser, KnowsWhatTheConnectionDoesNext) {
  const auto after = [](std::string_view text) {
    RequestParser parser(kLimits);
    EXPECT_EQ(parser.Feed(text).state, ParseState::kComplete);
    return parser.After();
  };
  EXPECT_EQ(after("GET / HTTP/1.1\r\n\r\n"), AfterResponse::kKeepAlive);
  EXPECT_EQ(after("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), AfterResponse::kClose);
  EXPECT_EQ(after("GET / HTTP/1.0\r\n\r\n"), AfterResponse::kClose);
  EXPECT_EQ(after("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
            AfterResponse::kKeepAliveOfHttp10);
}

// Goal: bytes changed on the way never crash, hang or exceed the limits, and how they are cut makes
// no difference to a request that is taken. Method: flip bits of real requests at random, parse
// whole and byte by byte. (How early an error is seen does depend on the cuts.)
TEST(RequestParser, TakesTheSameDamagedRequestsHoweverTheyAreCut) {
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    std::mt19937 random(seed);
    std::string text(seed % 2 == 0 ? kPut : kChunked);
    for (std::uint32_t flips = random() % 4 + 1; flips > 0; --flips) {
      char& flipped = text[random() % text.size()];
      flipped = static_cast<char>(static_cast<unsigned char>(flipped) ^ (1U << (random() % 8)));
    }
    const Parsed whole = ParseInPieces(text, text.size());
    const Parsed bytewise = ParseInPieces(text, 1);
    ASSERT_EQ(whole.request.has_value(), bytewise.request.has_value())
        << testing::PrintToString(text);
    if (whole.request) {
      EXPECT_EQ(whole.consumed_bytes, bytewise.consumed_bytes);
      ASSERT_EQ(whole.request->has_value(), bytewise.request->has_value());
    }
    if (whole.request && *whole.request) {
      EXPECT_EQ((*whole.request)->body, (*bytewise.request)->body);
      EXPECT_EQ((*whole.request)->headers, (*bytewise.request)->headers);
    }
  }
}

struct ParsedResponse {
  ParseState state = ParseState::kNeedMore;
  HttpResponse response;
  bool keep_alive = false;
};

ParsedResponse ParseResponse(std::string_view bytes, std::size_t piece_bytes,
                             std::string_view method = "GET", bool ends = false) {
  ResponseParser parser(kLimits, method);
  ParsedResponse parsed;
  while (!bytes.empty() && parsed.state == ParseState::kNeedMore) {
    const ParseProgress progress = parser.Feed(bytes.substr(0, piece_bytes));
    bytes.remove_prefix(progress.consumed_bytes);
    parsed.state = progress.state;
  }
  if (ends && parsed.state == ParseState::kNeedMore) {
    parsed.state = parser.FeedEnd();
  }
  if (parsed.state == ParseState::kComplete) {
    parsed.keep_alive = parser.KeepAlive();
    parsed.response = parser.Take();
  }
  return parsed;
}

TEST(ResponseParser, ReadsAResponseAfterInterimOnesInPiecesOfAnySize) {
  constexpr std::string_view kText =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
      "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno";
  for (std::size_t piece_bytes = 1; piece_bytes <= kText.size(); ++piece_bytes) {
    const ParsedResponse parsed = ParseResponse(kText, piece_bytes);
    ASSERT_EQ(parsed.state, ParseState::kComplete) << piece_bytes;
    EXPECT_EQ(parsed.response.status, 404);
    EXPECT_EQ(parsed.response.content_type, "text/plain");
    EXPECT_EQ(parsed.response.body, "no");
    EXPECT_THAT(parsed.response.headers,
                ElementsAre(Pair("Content-Type", "text/plain"), Pair("Content-Length", "2")));
    EXPECT_TRUE(parsed.keep_alive);
  }
}

TEST(ResponseParser, EndsABodyWithoutLengthAtTheEndOfTheConnection) {
  const ParsedResponse parsed = ParseResponse("HTTP/1.0 200 OK\r\n\r\nall", 1, "GET", true);
  ASSERT_EQ(parsed.state, ParseState::kComplete);
  EXPECT_EQ(parsed.response.body, "all");
  EXPECT_FALSE(parsed.keep_alive);
}

TEST(ResponseParser, CallsACutResponseMalformed) {
  for (const std::string_view text :
       {"", "H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n"}) {
    EXPECT_EQ(ParseResponse(text, 1000, "GET", true).state, ParseState::kMalformed) << text;
  }
}

TEST(ResponseParser, ExpectsNoBodyAfterHead) {
  const ParsedResponse parsed =
      ParseResponse("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 1000, "HEAD");
  EXPECT_EQ(parsed.state, ParseState::kComplete);
}

TEST(ResponseParser, HoldsToItsLimits) {
  EXPECT_EQ(ParseResponse("HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n", 1000).state,
            ParseState::kBodyTooLarge);
  EXPECT_EQ(ParseResponse("HTTP/1.1 200 OK\r\n\r\n" + std::string(65, 'x'), 10).state,
            ParseState::kBodyTooLarge);
  EXPECT_EQ(ParseResponse("HTTP/1.1 200 OK\r\nA: " + std::string(2000, 'x'), 10).state,
            ParseState::kHeaderTooLarge);
  std::string interim;
  for (int i = 0; i < 100; ++i) {
    interim += "HTTP/1.1 102 Processing\r\n\r\n";
  }
  EXPECT_EQ(ParseResponse(interim, 10).state, ParseState::kMalformed);
}

TEST(EncodeResponse, WritesWhatTheClientsParserReads) {
  EXPECT_EQ(EncodeResponse({.body = "OK"}, AfterResponse::kKeepAlive, true),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK");
  EXPECT_EQ(EncodeResponse({.status = 404, .content_type = "text/plain", .body = "no"},
                           AfterResponse::kClose, false),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n"
            "Connection: close\r\n\r\n");
  EXPECT_EQ(EncodeResponse({.status = 204, .body = "dropped"}, AfterResponse::kKeepAlive, true),
            "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST(EncodeResponse, TurnsWhatCannotBeSentIntoA500) {
  for (const HttpResponse& bad :
       {HttpResponse{.status = 99}, HttpResponse{.status = 600},
        HttpResponse{.content_type = "a\r\nX: y"}, HttpResponse{.headers = {{"A", "b\nc"}}},
        HttpResponse{.headers = {{"A b", "c"}}}}) {
    EXPECT_THAT(EncodeResponse(bad, AfterResponse::kKeepAlive, true), HasSubstr("HTTP/1.1 500"));
  }
}

TEST(EncodeRequest, WritesTheHeadersThatWereObserved) {
  const Url url = *Url::Parse("http://127.0.0.1:8080/metadata?key=a%2Fb");
  EXPECT_EQ(
      *EncodeRequest({.method = "PUT", .url = {}, .content_type = "application/json", .body = "{}"},
                     url),
      "PUT /metadata?key=a%2Fb HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n"
      "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(*EncodeRequest({.method = "GET"}, url),
            "GET /metadata?key=a%2Fb HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n\r\n");
  EXPECT_THAT(*EncodeRequest({.method = "POST"}, url), HasSubstr("Content-Length: 0\r\n"));
}

TEST(EncodeRequest, RefusesWhatWouldBreakTheRequest) {
  const Url url = *Url::Parse("http://a/");
  for (const HttpOutgoingRequest& bad :
       {HttpOutgoingRequest{.method = "GET /x"}, HttpOutgoingRequest{.method = ""},
        HttpOutgoingRequest{.content_type = "a\r\nb"},
        HttpOutgoingRequest{.headers = {{"X", "y\r\nZ: 1"}}},
        HttpOutgoingRequest{.headers = {{"content-length", "1"}}}}) {
    const auto text = EncodeRequest(bad, url);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace mooncake
