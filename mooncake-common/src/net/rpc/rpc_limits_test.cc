// What a server does not let its peers or its own handlers do to it: take every descriptor, or end
// the process.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kEcho = 1;
constexpr std::uint16_t kThrow = 2;  // Throws what its first byte says, after half an answer.

std::unique_ptr<RpcServer> StartServer(RpcServer::Options options = {}) {
  options.host = "127.0.0.1";
  auto server = std::make_unique<RpcServer>(options);
  server->Register(kEcho,
                   [](auto body, ReplyWriter& reply, const PeerInfo&) { reply.Append(body); });
  server->Register(kThrow, [](auto body, ReplyWriter& reply, const PeerInfo&) {
    reply.Append(std::vector<std::byte>(100));
    switch (static_cast<int>(body[0])) {
      case 0:
        throw std::runtime_error("the pattern is too hard");
      case 1:
        throw std::bad_alloc();
      default:
        throw 7;
    }
  });
  const auto started = server->Start();
  EXPECT_TRUE(started.has_value()) << (started ? "" : started.error().ToString());
  return server;
}

class RpcLimits : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().has_value()); }
  std::unique_ptr<RpcClient> ClientOf(const RpcServer& server) {
    return RpcClient::Create(reactor_, {.host = "127.0.0.1", .port = server.port()}).value();
  }
  static bool IsServed(RpcClient& client) {
    RpcReply reply;
    return client.Call(kEcho, {}, HangDeadline(), reply).has_value();
  }
  Reactor reactor_;
};

TEST_F(RpcLimits, AHandlerThatThrowsAnswersInternalAndTheServerGoesOn) {
  const auto server = StartServer();
  const auto client = ClientOf(*server);
  RpcReply reply;
  for (const int kind : {0, 1, 2}) {
    const std::vector<std::byte> body{static_cast<std::byte>(kind)};
    const auto called = client->Call(kThrow, body, HangDeadline(), reply);
    ASSERT_FALSE(called.has_value());
    EXPECT_EQ(called.error().code, ErrorCode::kInternal) << called.error().ToString();
    if (kind == 0) {
      EXPECT_NE(called.error().message.find("the pattern is too hard"), std::string::npos);
    }
    EXPECT_TRUE(IsServed(*client));
  }
  EXPECT_EQ(server->stats().thrown, 3U);
  EXPECT_EQ(server->stats().accepted, 1U) << "the connection stays";
}

TEST_F(RpcLimits, OneConnectionTooManyTakesThePlaceOfTheLongestSilent) {
  constexpr std::size_t kMost = 4;
  const auto server = StartServer({.max_connections = kMost});
  std::vector<std::unique_ptr<RpcClient>> clients;
  for (std::size_t i = 0; i < kMost; ++i) {
    clients.push_back(ClientOf(*server));
    ASSERT_TRUE(IsServed(*clients.back()));
  }
  ASSERT_TRUE(IsServed(*clients[0]));  // Now the second is the longest silent.
  const auto one_more = ClientOf(*server);
  ASSERT_TRUE(IsServed(*one_more));
  EXPECT_EQ(server->stats().open, kMost);
  EXPECT_EQ(server->stats().closed_for(RpcClose::kMadeRoom), 1U);
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}, std::size_t{3}}) {
    EXPECT_TRUE(IsServed(*clients[i]));
  }
  EXPECT_EQ(server->stats().accepted, kMost + 1) << "one that spoke lately was closed";
}

TEST_F(RpcLimits, StrangersMakeRoomBeforeThoseThatAreKnown) {
  const auto server = StartServer({.max_connections = 2, .hello_timeout = kHangLimit});
  const auto client = ClientOf(*server);
  ASSERT_TRUE(IsServed(*client));
  const SocketAddress address = ResolveAddress("127.0.0.1", server->port()).value();
  std::vector<UniqueFd> strangers;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    strangers.push_back(SocketConnect(address).value());
    ASSERT_TRUE(WaitUntil([&] { return server->stats().accepted == 1 + i; }));
  }
  EXPECT_TRUE(IsServed(*client));
  EXPECT_EQ(server->stats().accepted, 21U) << "the client had to come again";
  EXPECT_EQ(server->stats().closed_for(RpcClose::kMadeRoom), 19U);
}

}  // namespace
}  // namespace mooncake::rpc
