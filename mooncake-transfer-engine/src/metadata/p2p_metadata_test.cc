#include "mooncake-transfer-engine/src/metadata/p2p_metadata.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/test_support/loopback.h"

namespace mooncake::transfer {
namespace {

class P2p : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start()); }

  std::unique_ptr<P2pMetadata> Make(const std::string& name) {
    return std::make_unique<P2pMetadata>(
        MetadataOptions{.local_server_name = name, .handshake_ports = {.min = 0, .max = 0}},
        reactor_, Rng(1));
  }

  // Describes itself as an engine would.
  std::unique_ptr<P2pMetadata> Started(const std::string& name) {
    auto metadata = Make(name);
    const auto started = metadata->Start([self = metadata.get()] {
      return SegmentDescriptor{.name = self->LocalName(),
                               .tcp_data_host = self->DataHost(),
                               .tcp_data_port = 7,
                               .tcp_proto_version = 2};
    });
    EXPECT_TRUE(started.has_value()) << started.error().message;
    return metadata;
  }

  Reactor reactor_;
};

TEST_F(P2p, PeersFindEachOtherByTheNameThatResults) {
  for (const std::string host :
       {"127.0.0.1", "127.0.0.1:0", "localhost", "localhost:7777", "::1", "[::1]", "[::1]:0", ""}) {
    if (host.contains("::1") && !SocketListen("::1", 0)) {
      continue;  // No IPv6 on this host.
    }
    SCOPED_TRACE(host);
    const auto a = Started(host);
    const auto b = Started("127.0.0.1");
    ASSERT_NE(a->RpcPort(), 0);
    EXPECT_TRUE(a->LocalName().ends_with(":" + std::to_string(a->RpcPort())));
    const auto found = b->GetSegment(a->LocalName());
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(found->name, a->LocalName());
    EXPECT_FALSE(found->tcp_data_host.empty());  // Where absent, the host that was dialled.
    EXPECT_EQ(found->timestamp.size(), 26U);
    EXPECT_TRUE(b->Probe(a->LocalName()));
    EXPECT_TRUE(b->Notify(a->LocalName(), {.name = "n", .message = "m"}));
    EXPECT_EQ(a->TakeNotifies().size(), 1U);
  }
}

TEST_F(P2p, FillsInTheHostThatWasDialled) {
  const auto a = Started("");
  EXPECT_EQ(a->DataHost(), "");
  const auto b = Started("127.0.0.1");
  const auto found = b->GetSegment("127.0.0.1:" + std::to_string(a->RpcPort()));
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->tcp_data_host, "127.0.0.1");
}

TEST_F(P2p, FindsItself) {
  const auto a = Started("127.0.0.1");
  EXPECT_EQ(a->GetSegment("/" + a->LocalName())->name, a->LocalName());
}

TEST_F(P2p, QuotesNamesThatAreNone) {
  for (const std::string bad : {"[::1", "::1]:x", "1:2:3"}) {
    const auto started = Make(bad)->Start([] { return SegmentDescriptor{}; });
    ASSERT_FALSE(started.has_value());
    EXPECT_EQ(started.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(started.error().message.find(bad), std::string::npos) << started.error().message;
  }
  const auto a = Started("127.0.0.1");
  EXPECT_NE(a->GetSegment("1:2:3").error().message.find("1:2:3"), std::string::npos);
}

TEST_F(P2p, SaysThatAPeerIsGone) {
  const auto a = Started("127.0.0.1");
  auto b = Started(OwnLoopbackHost());
  const std::string name = b->LocalName();
  b->Stop();
  b->Stop();
  const auto found = a->GetSegment(name);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(found.error().message.find(name), std::string::npos) << found.error().message;
  EXPECT_EQ(a->Probe(name).error().code, ErrorCode::kUnavailable);
}

TEST_F(P2p, ManyOnOneHostHaveDifferentNames) {
  std::vector<std::unique_ptr<P2pMetadata>> all;
  std::set<std::string> names;
  for (int i = 0; i < 32; ++i) {
    all.push_back(Started("127.0.0.1"));
    EXPECT_TRUE(names.insert(all.back()->LocalName()).second);
  }
}

}  // namespace
}  // namespace mooncake::transfer
