#include "mooncake-transfer-engine/src/metadata/descriptor_codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace mooncake::transfer {
namespace {

// As the published package wrote it, captured from the wire.
constexpr std::string_view kGolden =
    R"({"buffers":[{"addr":140713127833616,"length":2147483648,"name":"127.0.0.1:12347"}],)"
    R"("name":"127.0.0.1:12347","protocol":"tcp","rdma_server_name":"","tcp_data_host":"192.0.2.2",)"
    R"("tcp_data_port":15682,"tcp_proto_version":2,"timestamp":"2026-12-02 02:01:16.696704"})";

SegmentDescriptor Golden() {
  return {.name = "127.0.0.1:12347",
          .protocol = "tcp",
          .buffers = {{.name = "127.0.0.1:12347",
                       .address = 140713127833616,
                       .length_bytes = 2147483648}},
          .tcp_data_host = "192.0.2.2",
          .tcp_data_port = 15682,
          .tcp_proto_version = 2,
          .timestamp = "2026-12-02 02:01:16.696704"};
}

SegmentDescriptor WithExtension() {
  SegmentDescriptor descriptor = Golden();
  descriptor.buffers.push_back({.name = "n",
                                .address = 0x7000,
                                .length_bytes = 4096,
                                .shared = SharedMemory{.fd = 9, .offset_bytes = 8192}});
  descriptor.extension = PeerExtension{.host_id = "0b3c",
                                       .pid_namespace = 4026531836,
                                       .pid = 4711,
                                       .nonce = UINT64_MAX,
                                       .nonce_address = 0x7ffffffffff8,
                                       .nonce_fd = 5,
                                       .incarnation = 1ULL << 63,
                                       .tcp_extension_version = 1};
  return descriptor;
}

ErrorCode CodeOf(std::string_view json) {
  const auto decoded = DecodeDescriptor(json);
  EXPECT_FALSE(decoded.has_value()) << json;
  return decoded ? ErrorCode::kInternal : decoded.error().code;
}

TEST(DescriptorCodec, WritesWhatThePublishedPackageWrites) {
  EXPECT_EQ(EncodeDescriptor(Golden()), kGolden);
}

TEST(DescriptorCodec, ReadsWhatThePublishedPackageWrites) {
  const auto decoded = DecodeDescriptor(kGolden);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->name, "127.0.0.1:12347");
  ASSERT_EQ(decoded->buffers.size(), 1U);
  EXPECT_EQ(decoded->buffers[0].address, 140713127833616U);
  EXPECT_EQ(decoded->buffers[0].length_bytes, 2147483648U);
  EXPECT_EQ(decoded->tcp_data_host, "192.0.2.2");
  EXPECT_EQ(decoded->tcp_data_port, 15682);
  EXPECT_EQ(decoded->tcp_proto_version, 2U);
  EXPECT_EQ(decoded->timestamp, "2026-12-02 02:01:16.696704");
  EXPECT_FALSE(decoded->extension.has_value());
  EXPECT_EQ(EncodeDescriptor(*decoded), kGolden);
}

TEST(DescriptorCodec, LeavesOutAnEmptyDataHost) {
  SegmentDescriptor descriptor = Golden();
  descriptor.tcp_data_host.clear();
  descriptor.name = ":16456";
  descriptor.buffers.clear();
  descriptor.tcp_data_port = 15394;
  EXPECT_EQ(
      EncodeDescriptor(descriptor),
      R"({"buffers":[],"name":":16456","protocol":"tcp","rdma_server_name":"",)"
      R"("tcp_data_port":15394,"tcp_proto_version":2,"timestamp":"2026-12-02 02:01:16.696704"})");
}

TEST(DescriptorCodec, NeedsOnlyNameProtocolAndBuffers) {
  const auto decoded = DecodeDescriptor(R"({"name":"a","protocol":"tcp","tcp_data_port":7})");
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->tcp_proto_version, 1U);  // Absent means 1.
  EXPECT_EQ(decoded->tcp_data_host, "");
  EXPECT_TRUE(decoded->buffers.empty());
}

TEST(DescriptorCodec, ToleratesWhiteSpaceNewlinesAndUnknownFields) {
  const auto decoded = DecodeDescriptor(
      "\n\t {\"future\" : {\"x\":[1,2.5,null]},\r\n \"name\":\"a\",\"protocol\":\"tcp\","
      "\"tcp_data_port\":7,\"tcp_proto_version\":3, \"buffers\":[{\"addr\":1,\"length\":2,"
      "\"name\":\"a\",\"colour\":\"red\"}]}\n\n");
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->tcp_proto_version, 2U);  // Whoever speaks more speaks 2 as well.
  EXPECT_EQ(decoded->buffers.at(0).length_bytes, 2U);
}

TEST(DescriptorCodec, CarriesTheExtensionWithoutLoss) {
  const SegmentDescriptor descriptor = WithExtension();
  const std::string text = EncodeDescriptor(descriptor);
  EXPECT_NE(
      text.find(
          R"("mooncake_ext":{"host_id":"0b3c","incarnation":9223372036854775808,"nonce":18446744073709551615,)"
          R"("nonce_address":140737488355320,"nonce_fd":5,"pid":4711,"pid_namespace":4026531836,)"
          R"("shared":[{"buffer":1,"fd":9,"offset":8192}],"tcp_extension_version":1,"version":1})"),
      std::string::npos)
      << text;
  const auto decoded = DecodeDescriptor(text);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  ASSERT_TRUE(decoded->extension.has_value());
  EXPECT_EQ(decoded->extension->nonce, UINT64_MAX);
  EXPECT_EQ(decoded->extension->incarnation, 1ULL << 63);
  EXPECT_EQ(decoded->extension->pid, 4711);
  EXPECT_EQ(decoded->extension->nonce_fd, 5);
  EXPECT_FALSE(decoded->buffers[0].shared.has_value());
  ASSERT_TRUE(decoded->buffers[1].shared.has_value());
  EXPECT_EQ(decoded->buffers[1].shared->fd, 9);
  EXPECT_EQ(decoded->buffers[1].shared->offset_bytes, 8192U);
  EXPECT_EQ(EncodeDescriptor(*decoded), text);
}

TEST(DescriptorCodec, DropsAnExtensionOfALaterVersion) {
  const auto decoded = DecodeDescriptor(
      R"({"name":"a","protocol":"tcp","mooncake_ext":{"version":2,"pid":"elsewhere now"}})");
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_FALSE(decoded->extension.has_value());
}

TEST(DescriptorCodec, TakesTcpWithItsBuffersOutOfSeveralProtocols) {
  const auto decoded = DecodeDescriptor(
      R"({"name":"a","protocol":["hip","tcp"],"buffers":[)"
      R"({"protocol":"hip","name":"hip:0","addr":1,"length":1,"shm_name":"00"},)"
      R"({"protocol":"tcp","name":"a","addr":4096,"length":8}],)"
      R"("mooncake_ext":{"version":1,"shared":[{"buffer":0,"fd":3},{"buffer":1,"fd":4}]}})");
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->protocol, "tcp");
  ASSERT_EQ(decoded->buffers.size(), 1U);
  EXPECT_EQ(decoded->buffers[0].address, 4096U);
  ASSERT_TRUE(decoded->buffers[0].shared.has_value());
  EXPECT_EQ(decoded->buffers[0].shared->fd, 4);  // Counted in the document, not in what was taken.
}

TEST(DescriptorCodec, ReadsTheBuffersOfAnRdmaSegment) {
  const auto decoded = DecodeDescriptor(
      R"({"name":"a","protocol":"rdma","devices":[{"name":"mlx5_0","lid":1,"gid":"00:01"}],)"
      R"("buffers":[{"name":"cpu:0","addr":4096,"length":8,"rkey":[1],"lkey":[2]}],)"
      R"("priority_matrix":{"cpu:0":[["mlx5_0"],[]]}})");
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->protocol, "rdma");
  EXPECT_EQ(decoded->buffers.at(0).name, "cpu:0");
}

TEST(DescriptorCodec, RefusesWhatIsNoDescriptor) {
  for (
      const std::string_view json : {
          "",
          "null",
          "[]",
          "7",
          "{",
          "{}",
          R"({"name":"a"})",
          R"({"protocol":"tcp"})",
          R"({"name":"","protocol":"tcp"})",
          R"({"name":7,"protocol":"tcp"})",
          R"({"name":"a","protocol":7})",
          R"({"name":"a","protocol":[]})",
          R"({"name":"a","protocol":["tcp",1]})",
          R"({"name":"a","protocol":"tcp"} x)",
          R"({"name":"a","protocol":"tcp","buffers":{}})",
          R"({"name":"a","protocol":"tcp","buffers":[7]})",
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":1,"length":1}]})",
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":1,"length":1,"name":""}]})",
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":0,"length":1,"name":"a"}]})",
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":1,"length":0,"name":"a"}]})",
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":-1,"length":1,"name":"a"}]})",
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":1.5,"length":1,"name":"a"}]})",
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":"1","length":1,"name":"a"}]})",
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":18446744073709551616,"length":1,"name":"a"}]})",
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":18446744073709551615,"length":2,"name":"a"}]})",
          R"({"name":"a","protocol":"tcp","tcp_data_port":65536})",
          R"({"name":"a","protocol":"tcp","tcp_data_port":1e999})",
          R"({"name":"a","protocol":"tcp","tcp_proto_version":"2"})",
          R"({"name":"a","protocol":"tcp","mooncake_ext":[]})",
          R"({"name":"a","protocol":"tcp","mooncake_ext":{}})",
          R"({"name":"a","protocol":"tcp","mooncake_ext":{"version":1,"pid":4294967296}})",
          R"({"name":"a","protocol":"tcp","mooncake_ext":{"version":1,"shared":[{"buffer":0,"fd":1}]}})",
          "{\"name\":\"\xff\",\"protocol\":\"tcp\"}",
      }) {
    EXPECT_EQ(CodeOf(json), ErrorCode::kMalformed) << json;
  }
}

TEST(DescriptorCodec, AcceptsABufferThatEndsAtTheEndOfTheAddressSpace) {
  EXPECT_TRUE(
      DecodeDescriptor(
          R"({"name":"a","protocol":"tcp","buffers":[{"addr":18446744073709551615,"length":1,"name":"a"}]})")
          .has_value());
}

TEST(DescriptorCodec, NamesProtocolsThatAreNotBuilt) {
  const auto decoded =
      DecodeDescriptor(R"({"name":"a","protocol":"cxl","buffers":[{"offset":0}]})");
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().code, ErrorCode::kNotSupported);
  EXPECT_NE(decoded.error().message.find("cxl"), std::string::npos);
}

TEST(DescriptorCodec, IsBoundedInSizeAndDepth) {
  EXPECT_EQ(DecodeDescriptor(kGolden, kGolden.size() - 1).error().code, ErrorCode::kMalformed);
  EXPECT_TRUE(DecodeDescriptor(kGolden, kGolden.size()).has_value());
  EXPECT_EQ(CodeOf(R"({"name":"a","protocol":"tcp","x":)" + std::string(100000, '[') +
                   std::string(100000, ']') + "}"),
            ErrorCode::kMalformed);
  // Brackets within strings do not nest.
  EXPECT_TRUE(
      DecodeDescriptor(R"({"name":"a","protocol":"tcp","x":"\")" + std::string(1000, '[') + "\"}")
          .has_value());
}

TEST(DescriptorCodec, ErrorsStayShort) {
  const auto decoded = DecodeDescriptor("{\"name\":\"" + std::string(1 << 20, 'a'));
  ASSERT_FALSE(decoded.has_value());
  EXPECT_LT(decoded.error().message.size(), 400U);
}

TEST(DescriptorCodec, WritesBytesThatAreNoTextWithoutFailing) {
  SegmentDescriptor descriptor = Golden();
  descriptor.name = "a\xff\"\n";
  const auto decoded = DecodeDescriptor(EncodeDescriptor(descriptor));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->name, "a\xef\xbf\xbd\"\n");
}

// Goal: a damaged descriptor is refused or read as another one, and never more than that. Whatever
// is read can be written and read again.
TEST(DescriptorCodec, SurvivesFlippedAndMissingBytes) {
  const std::string text = EncodeDescriptor(WithExtension());
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    EXPECT_EQ(CodeOf(std::string_view(text).substr(0, cut)), ErrorCode::kMalformed) << cut;
  }
  constexpr std::uint32_t kSeed = 20261202;
  SCOPED_TRACE(testing::Message() << "seed=" << kSeed);
  std::mt19937 random(kSeed);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    for (std::uint32_t flips = random() % 3 + 1; flips > 0; --flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (const auto decoded = DecodeDescriptor(damaged)) {
      ++read;
      const std::string again = EncodeDescriptor(*decoded);
      const auto second = DecodeDescriptor(again);
      ASSERT_TRUE(second.has_value()) << damaged << "\n" << second.error().message;
      EXPECT_EQ(EncodeDescriptor(*second), again);
    }
  }
  EXPECT_GT(read, 0);  // Digits and letters of names may change.
}

}  // namespace
}  // namespace mooncake::transfer
