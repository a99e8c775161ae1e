#include "mooncake-transfer-engine/src/metadata/handshake_codec.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace mooncake::transfer {
namespace {

using std::string_literals::operator""s;

// Captured from the wire of the published package.
std::string ProbeRequestFrame() { return "\x04\x00\x00\x00\x00\x00\x00\x00\x03{}\n"s; }
std::string ProbeReplyFrame() {
  return "\x16\x00\x00\x00\x00\x00\x00\x00\x03{\"status\":\"success\"}\n"s;
}

HandshakeMessage ReadWhole(std::string_view frame) {
  HandshakeReader reader(kDefaultMaxHandshakeBytes);
  const auto complete = reader.Feed(frame);
  EXPECT_TRUE(complete.has_value() && *complete);
  return reader.Take();
}

TEST(HandshakeCodec, WritesTheFramesOfThePublishedPackage) {
  EXPECT_EQ(EncodeHandshake(HandshakeType::kProbe, kProbeRequest), ProbeRequestFrame());
  EXPECT_EQ(EncodeHandshake(HandshakeType::kProbe, kProbeReply), ProbeReplyFrame());
  EXPECT_EQ(EncodeHandshake(HandshakeType::kMetadata, kNoDescriptor),
            "\x06\x00\x00\x00\x00\x00\x00\x00\x01null\n"s);
  EXPECT_EQ(EncodeHandshake(std::nullopt, "{}"), "\x03\x00\x00\x00\x00\x00\x00\x00{}\n"s);
}

TEST(HandshakeCodec, WritesNotificationsLikeThePublishedPackage) {
  EXPECT_EQ(EncodeNotification({.name = "n1", .message = "m1"}),
            R"({"name":"n1","notify_msg":"m1"})");
  EXPECT_EQ(DecodeNotification("{\"name\":\"n1\",\"notify_msg\":\"m1\"}\n"),
            (Notification{.name = "n1", .message = "m1"}));
  EXPECT_EQ(DecodeNotification(kNotifyAccepted)->message, "success");
  EXPECT_EQ(DecodeNotification("{}"), Notification{});
}

TEST(HandshakeCodec, RefusesNotificationsThatJsonCannotCarry) {
  EXPECT_EQ(EncodeNotification({.name = "n", .message = "\xff"}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(DecodeNotification(R"({"name":1})").error().code, ErrorCode::kMalformed);
  EXPECT_EQ(DecodeNotification("[]").error().code, ErrorCode::kMalformed);
}

TEST(HandshakeCodec, ReadsEveryType) {
  for (const HandshakeType type : {HandshakeType::kConnection, HandshakeType::kMetadata,
                                   HandshakeType::kNotify, HandshakeType::kProbe}) {
    const HandshakeMessage message = ReadWhole(EncodeHandshake(type, R"({"a":1})"));
    EXPECT_EQ(message.type, type) << HandshakeTypeName(type);
    EXPECT_EQ(message.json, "{\"a\":1}\n");
  }
}

TEST(HandshakeCodec, ReadsFramesWithoutOrWithAnUnknownType) {
  const HandshakeMessage old = ReadWhole(EncodeHandshake(std::nullopt, R"({"qp_num":[]})"));
  EXPECT_EQ(old.type, std::nullopt);
  EXPECT_EQ(old.json, "{\"qp_num\":[]}\n");
  const HandshakeMessage later = ReadWhole("\x04\x00\x00\x00\x00\x00\x00\x00\x07{}\n"s);
  EXPECT_EQ(later.type, std::nullopt);
  EXPECT_EQ(later.json, "{}\n");
}

TEST(HandshakeCodec, ReadsAFrameByteByByteAndIgnoresWhatFollows) {
  const std::string frame = EncodeHandshake(HandshakeType::kNotify, R"({"name":"x"})");
  HandshakeReader reader(kDefaultMaxHandshakeBytes);
  for (std::size_t i = 0; i < frame.size(); ++i) {
    const auto complete = reader.Feed(std::string_view(frame).substr(i, 1));
    ASSERT_TRUE(complete.has_value());
    EXPECT_EQ(*complete, i + 1 == frame.size()) << i;
  }
  EXPECT_EQ(reader.Feed("trailing bytes"), true);
  EXPECT_EQ(reader.Take().json, "{\"name\":\"x\"}\n");
}

TEST(HandshakeCodec, RefusesLengthsBeyondTheLimitAtOnce) {
  for (const std::string& length :
       {"\x00\x00\x00\x00\x00\x00\x00\x00"s, "\x65\x00\x00\x00\x00\x00\x00\x00"s,
        "\xff\xff\xff\xff\xff\xff\xff\xff"s, "\xf9\xff\xff\xff\xff\xff\xff\xff"s}) {
    HandshakeReader reader(100);
    const auto complete = reader.Feed(length);
    ASSERT_FALSE(complete.has_value());
    EXPECT_EQ(complete.error().code, ErrorCode::kMalformed);
    EXPECT_NE(complete.error().message.find("MC_HANDSHAKE_MAX_LENGTH"), std::string::npos);
  }
  HandshakeReader reader(100);
  EXPECT_EQ(reader.Feed("\x64\x00\x00\x00\x00\x00\x00\x00"s), false);
}

TEST(HandshakeCodec, HoldsNoMoreThanWhatArrived) {
  HandshakeReader reader(std::size_t{1} << 30);
  EXPECT_EQ(reader.Feed("\x00\x00\x00\x30\x00\x00\x00\x00\x03{"s), false);
  EXPECT_EQ(reader.buffered_bytes(), 10U);
}

TEST(HandshakeCodec, JudgesJsonWithoutBuildingIt) {
  EXPECT_TRUE(IsHandshakeJson("{}\n"));
  EXPECT_TRUE(IsHandshakeJson(" null\n"));
  EXPECT_FALSE(IsHandshakeJson(""));
  EXPECT_FALSE(IsHandshakeJson("{"));
  EXPECT_FALSE(IsHandshakeJson("{} {}"));
  EXPECT_FALSE(IsHandshakeJson(std::string(100000, '[') + std::string(100000, ']')));
}

// Goal: however a frame is cut into pieces, the same message comes out.
TEST(HandshakeCodec, DoesNotDependOnHowBytesArrive) {
  constexpr std::uint32_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed=" << kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 500; ++round) {
    const std::string json = "\"" + std::string(random() % 3000, 'j') + "\"";
    const std::string frame =
        EncodeHandshake(static_cast<HandshakeType>(random() % 4), json) + "more";
    HandshakeReader reader(kDefaultMaxHandshakeBytes);
    std::string_view rest = frame;
    bool complete = false;
    while (!rest.empty()) {
      const std::string_view piece = rest.substr(0, random() % 700 + 1);
      rest.remove_prefix(piece.size());
      complete = reader.Feed(piece).value();
    }
    ASSERT_TRUE(complete);
    EXPECT_EQ(reader.Take().json, json + "\n");
  }
}

}  // namespace
}  // namespace mooncake::transfer
