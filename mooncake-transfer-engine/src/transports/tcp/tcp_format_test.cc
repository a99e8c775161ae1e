#include "mooncake-transfer-engine/src/transports/tcp/tcp_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace mooncake::transfer {
namespace {

using testing::ElementsAre;

// Seen on the wire of the published package: a v2 READ of 8 bytes at 0x100000.
constexpr std::array<unsigned char, 24> kGoldenRead{0x08, 0,    0, 0, 0, 0, 0, 0,   0,
                                                    0,    0x10, 0, 0, 0, 0, 0, 0x80};
constexpr std::array<unsigned char, 8> kGoldenOk{0, 0, 0, 0, 0x56, 0x54, 0x43, 0x4D};
constexpr std::array<unsigned char, 8> kGoldenRejected{1, 0, 0, 0, 0x56, 0x54, 0x43, 0x4D};

template <std::size_t N>
std::array<std::byte, N> Bytes(const std::array<unsigned char, N>& values) {
  std::array<std::byte, N> bytes{};
  std::ranges::transform(values, bytes.begin(), [](unsigned char c) { return std::byte{c}; });
  return bytes;
}

TEST(TcpFormat, WritesAndReadsTheObservedBytes) {
  const TcpRequest read{.protocol = TcpProtocol::kV2,
                        .extent = {.address = 0x100000, .length_bytes = 8}};
  EXPECT_EQ(EncodeTcpRequest(read), Bytes(kGoldenRead));
  const auto decoded = DecodeTcpRequest(Bytes(kGoldenRead));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->protocol, TcpProtocol::kV2);
  EXPECT_EQ(decoded->opcode, Opcode::kRead);
  EXPECT_EQ(decoded->extent.address, 0x100000U);
  EXPECT_EQ(decoded->extent.length_bytes, 8U);
  EXPECT_EQ(EncodeTcpStatus(true), Bytes(kGoldenOk));
  EXPECT_EQ(EncodeTcpStatus(false), Bytes(kGoldenRejected));
  EXPECT_EQ(DecodeTcpStatus(Bytes(kGoldenOk)), true);
  EXPECT_EQ(DecodeTcpStatus(Bytes(kGoldenRejected)), false);
}

TEST(TcpFormat, IgnoresThePaddingOfOldHeads) {
  auto head = Bytes(kGoldenRead);
  std::fill(head.begin() + 17, head.end(), std::byte{0xFF});
  EXPECT_TRUE(DecodeTcpRequest(head));
}

TEST(TcpFormat, AcceptsTheSixKnownOpcodesAndNoOther) {
  for (int opcode = 0; opcode < 256; ++opcode) {
    TcpRequest request{.protocol = TcpProtocol::kExtended, .extent_count = 1};
    auto head = EncodeTcpRequest(request);  // With the extension's mark.
    head[16] = static_cast<std::byte>(opcode);
    const bool known = opcode == 0 || opcode == 1 || opcode == 0x80 || opcode == 0x81 ||
                       opcode == 0x40 || opcode == 0x41;
    EXPECT_EQ(DecodeTcpRequest(head).has_value(), known) << opcode;
  }
}

TEST(TcpFormat, AnExtendedHeadMustBeWholeAndWithinItsBounds) {
  const TcpRequest request{.protocol = TcpProtocol::kExtended,
                           .opcode = Opcode::kWrite,
                           .id = 0x0102030405060708,
                           .extent_count = kTcpMaxExtents};
  const auto head = EncodeTcpRequest(request);
  const auto decoded = DecodeTcpRequest(head);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->id, request.id);
  EXPECT_EQ(decoded->opcode, Opcode::kWrite);
  EXPECT_EQ(decoded->extent_count, kTcpMaxExtents);
  for (const std::size_t at : {12U, 15U, 17U, 20U, 23U}) {
    auto flipped = head;
    flipped[at] ^= std::byte{1};
    EXPECT_FALSE(DecodeTcpRequest(flipped)) << "byte " << at;
  }
  for (const std::uint32_t count : {0U, kTcpMaxExtents + 1, ~0U}) {
    EXPECT_FALSE(DecodeTcpRequest(
        EncodeTcpRequest({.protocol = TcpProtocol::kExtended, .extent_count = count})));
  }
}

TEST(TcpFormat, AReplyNamesTheRejectedExtents) {
  for (const std::uint32_t count : {1U, 63U, 64U, 65U, kTcpMaxExtents}) {
    std::vector<bool> rejected(count, false);
    const auto none = EncodeTcpReply(9, rejected);
    EXPECT_EQ(none.size(), TcpReplyBytes(count));
    EXPECT_THAT(DecodeTcpReply(none, 9, count).value(), ElementsAre());
    rejected[count - 1] = true;
    EXPECT_THAT(DecodeTcpReply(EncodeTcpReply(9, rejected), 9, count).value(),
                ElementsAre(count - 1));
  }
}

TEST(TcpFormat, AReplyToAnotherRequestOrOneThatContradictsItselfIsMalformed) {
  std::vector<bool> rejected{false, true, false};
  const auto reply = EncodeTcpReply(9, rejected);
  EXPECT_FALSE(DecodeTcpReply(reply, 8, 3));
  EXPECT_FALSE(DecodeTcpReply(reply, 9, 65));
  EXPECT_FALSE(DecodeTcpReply(std::span(reply).first(8), 9, 3));
  for (const std::size_t at : {0U, 8U, 12U, 16U}) {
    auto flipped = reply;
    flipped[at] ^= std::byte{4};
    EXPECT_FALSE(DecodeTcpReply(flipped, 9, 3)) << "byte " << at;
  }
}

}  // namespace
}  // namespace mooncake::transfer
