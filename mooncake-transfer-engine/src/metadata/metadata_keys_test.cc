#include "mooncake-transfer-engine/src/metadata/metadata_keys.h"

#include <gtest/gtest.h>

namespace mooncake::transfer {
namespace {

TEST(MetadataKeys, AreThoseOfPublishedPeers) {
  EXPECT_EQ(SegmentKey("", "127.0.0.1:12345"), "mooncake/ram/127.0.0.1:12345");
  EXPECT_EQ(SegmentKey("", "nvmeof/seg"), "mooncake/nvmeof/seg");
  EXPECT_EQ(RpcMetaKey("", "127.0.0.1:12345"), "mooncake/rpc_meta/127.0.0.1:12345");
}

TEST(MetadataKeys, CarryTheClusterId) {
  EXPECT_EQ(SegmentKey("blue", "a"), "mooncake/blue/ram/a");
  EXPECT_EQ(SegmentKey("blue", "nvmeof/seg"), "mooncake/blue/nvmeof/seg");
  EXPECT_EQ(RpcMetaKey("blue", "a"), "mooncake/blue/rpc_meta/a");
}

TEST(MetadataKeys, RpcMetaIsThatOfPublishedPeers) {
  const std::string text = R"({"ip_or_host_name":"192.0.2.2","rpc_port":16044})";
  EXPECT_EQ(EncodeRpcMeta({.host = "192.0.2.2", .port = 16044}), text);
  EXPECT_EQ(DecodeRpcMeta(text), (RpcMeta{.host = "192.0.2.2", .port = 16044}));
  EXPECT_EQ(DecodeRpcMeta(" {\"rpc_port\": 16044, \"barex_port\": 1,\"ip_or_host_name\":\"a\"}\n"),
            (RpcMeta{.host = "a", .port = 16044}));
}

TEST(MetadataKeys, RefuseWhatIsNoRpcMeta) {
  for (const std::string_view bad :
       {"", "null", "{}", R"({"ip_or_host_name":"a"})", R"({"ip_or_host_name":"a","rpc_port":0})",
        R"({"ip_or_host_name":"a","rpc_port":65536})", R"({"ip_or_host_name":"a","rpc_port":"1"})",
        R"({"ip_or_host_name":"","rpc_port":1})"}) {
    const auto decoded = DecodeRpcMeta(bad);
    ASSERT_FALSE(decoded.has_value()) << bad;
    EXPECT_EQ(decoded.error().code, ErrorCode::kMalformed) << bad;
  }
}

}  // namespace
}  // namespace mooncake::transfer
