#include "mooncake-common/src/net/rpc/frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/net/rpc/hello.h"

namespace mooncake::rpc {
namespace {

std::vector<std::byte> Encode(const FrameHeader& header, std::string_view body) {
  std::vector<std::byte> bytes(FrameBytes(body.size()));
  EncodeFrameHeader(header, std::span(bytes).first<kFrameHeaderBytes>());
  std::copy(body.begin(), body.end(), reinterpret_cast<char*>(bytes.data() + kFrameHeaderBytes));
  return bytes;
}

FrameHeader Header(std::size_t body_bytes) {
  return {.body_bytes = static_cast<std::uint32_t>(body_bytes),
          .method = 0x0102,
          .flags = FrameFlags::kReply,
          .id = 0x0102030405060708};
}

// The worked example of docs/formats/rpc.md.
TEST(Frame, StandsOnTheWireAsDocumented) {
  const auto bytes =
      Encode({.body_bytes = 3, .method = 11, .flags = FrameFlags::kRequest, .id = 5}, "abc");
  const std::string_view wanted("\x03\0\0\0\x0b\0\0\0\x05\0\0\0\0\0\0\0abc\0\0\0\0\0", 24);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), wanted);
}

TEST(Frame, ComesBackWholeHoweverManyBytesHaveArrived) {
  for (const std::string body : {"", "x", "12345678", "a longer body"}) {
    const auto bytes = Encode(Header(body.size()), body);
    for (std::size_t arrived = 0; arrived <= bytes.size(); ++arrived) {
      const auto frame = DecodeFrame(std::span(bytes).first(arrived));
      ASSERT_TRUE(frame.has_value());
      EXPECT_EQ(frame->bytes, arrived == bytes.size() ? bytes.size() : 0U);
      if (frame->bytes != 0) {
        EXPECT_EQ(frame->header.id, Header(0).id);
        EXPECT_EQ(frame->header.method, Header(0).method);
        EXPECT_EQ(frame->body.size(), body.size());
      }
    }
  }
}

TEST(Frame, WhatCannotBeIsMalformed) {
  auto too_large = Encode(Header(kMaxBodyBytes + 1), "");
  EXPECT_EQ(DecodeFrame(too_large).error().code, ErrorCode::kMalformed);
  auto unknown_flags = Encode(Header(0), "");
  unknown_flags[6] = std::byte{9};
  EXPECT_EQ(DecodeFrame(unknown_flags).error().code, ErrorCode::kMalformed);
  auto padding = Encode(Header(1), "x");
  padding.back() = std::byte{1};
  EXPECT_EQ(DecodeFrame(padding).error().code, ErrorCode::kMalformed);
}

TEST(Frame, ErrorsTravelAndUnknownCodesReadAsInternal) {
  const Error error{ErrorCode::kTimeout, "too late"};
  std::vector<std::byte> body(ErrorBodyBytes(error));
  EncodeError(error, body);
  EXPECT_EQ(DecodeError(body).code, ErrorCode::kTimeout);
  EXPECT_EQ(DecodeError(body).message, "too late");
  body[0] = std::byte{250};
  EXPECT_EQ(DecodeError(body).code, ErrorCode::kInternal);
  const Error endless{ErrorCode::kTimeout, std::string(kMaxErrorTextBytes * 2, 'x')};
  EXPECT_LE(ErrorBodyBytes(endless), kMaxErrorTextBytes + 1);
}

TEST(Hello, IsAnsweredByVersionAndToken) {
  const Hello ours{.min_version = 2, .max_version = 4, .token = "t"};
  EXPECT_FALSE(
      AnswerHello({.min_version = 1, .max_version = 3, .token = "t"}, ours).refusal.has_value());
  EXPECT_EQ(AnswerHello({.min_version = 1, .max_version = 3, .token = "t"}, ours).version, 3);
  EXPECT_EQ(AnswerHello({.min_version = 5, .max_version = 9, .token = "t"}, ours).refusal->code,
            ErrorCode::kNotSupported);
  EXPECT_EQ(AnswerHello({.min_version = 1, .max_version = 3, .token = "x"}, ours).refusal->code,
            ErrorCode::kPermissionDenied);
}

TEST(Hello, SurvivesFlippedAndMissingBytes) {
  const auto hello = EncodeHello({.features = 5, .token = "token", .software = "software"});
  const auto whole = DecodeHello(hello);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->token, "token");
  EXPECT_EQ(whole->features, 5U);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    auto bytes = hello;
    bytes[rng.Uniform(bytes.size())] ^= static_cast<std::byte>(1U << rng.Uniform(8));
    bytes.resize(rng.Chance(1, 3) ? rng.Uniform(bytes.size()) : bytes.size());
    bytes.shrink_to_fit();
    const auto decoded = DecodeHello(bytes);
    EXPECT_TRUE(decoded.has_value() || decoded.error().code == ErrorCode::kMalformed);
    static_cast<void>(DecodeWelcome(bytes));
  }
}

}  // namespace
}  // namespace mooncake::rpc
