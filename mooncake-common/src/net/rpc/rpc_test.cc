// Client and server over loopback: answers, errors, deadlines, lost servers, many threads.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/frame.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kEcho = 1;
constexpr std::uint16_t kFail = 2;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
Instant In(Duration time) { return SteadyClock::Get().Now() + time; }

std::unique_ptr<RpcServer> StartServer(RpcServer::Options options) {
  options.host = "127.0.0.1";
  auto server = std::make_unique<RpcServer>(options);
  server->Register(kEcho, [](std::span<const std::byte> body, ReplyWriter& reply, const PeerInfo&) {
    reply.Append(body);
  });
  server->Register(kFail, [](std::span<const std::byte> body, ReplyWriter& reply, const PeerInfo&) {
    reply.Append(body);
    reply.Fail({ErrorCode::kNotFound, "no such thing"});
  });
  const auto started = server->Start();
  EXPECT_TRUE(started.has_value()) << (started ? "" : started.error().ToString());
  return server;
}

class RpcTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().has_value()); }
  std::unique_ptr<RpcClient> Connect(std::uint16_t port, RpcClient::Options options = {}) {
    options.host = "127.0.0.1";
    options.port = port;
    auto client = RpcClient::Create(reactor_, options);
    EXPECT_TRUE(client.has_value());
    return *std::move(client);
  }
  Reactor reactor_;
};

TEST_F(RpcTest, AnswersComeBackAndTheReplyIsReused) {
  const auto server = StartServer({});
  const auto client = Connect(server->port());
  RpcReply reply;
  for (const std::string text : {"one", "", "a longer one than before", "two"}) {
    const auto called = client->Call(kEcho, Bytes(text), HangDeadline(), reply);
    ASSERT_TRUE(called.has_value()) << called.error().ToString();
    EXPECT_EQ(Text(reply.body()), text);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(reply.body().data()) % 8, 0U);
  }
  EXPECT_EQ(server->stats().accepted, 1U);
}

TEST_F(RpcTest, ErrorsOfHandlersAndUnknownMethodsComeBackInWords) {
  const auto server = StartServer({});
  const auto client = Connect(server->port());
  RpcReply reply;
  const auto failed = client->Call(kFail, Bytes("x"), HangDeadline(), reply);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kNotFound);
  EXPECT_NE(failed.error().message.find("no such thing"), std::string::npos);
  EXPECT_FALSE(client->Call(99, {}, HangDeadline(), reply).has_value());
  EXPECT_EQ(server->stats().unknown_methods, 1U);
  EXPECT_TRUE(client->Call(kEcho, Bytes("y"), HangDeadline(), reply).has_value());
}

TEST_F(RpcTest, LargeBodiesTravelAndTooLargeOnesAreRefusedBeforeTheyDo) {
  const auto server = StartServer({});
  const auto client = Connect(server->port());
  RpcReply reply;
  std::vector<std::byte> body(5 << 20);
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<std::byte>(i * 31);
  }
  ASSERT_TRUE(client->Call(kEcho, body, HangDeadline(), reply).has_value());
  EXPECT_TRUE(std::ranges::equal(reply.body(), body));
  body.resize(kMaxBodyBytes + 1);
  const auto refused = client->Call(kEcho, body, HangDeadline(), reply);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RpcTest, CallsThatNobodyWaitsForHaveTheirCallbackOnce) {
  const auto server = StartServer({});
  const auto client = Connect(server->port());
  std::atomic<int> answered{0};
  Event all;
  constexpr int kCalls = 200;
  for (int i = 0; i < kCalls; ++i) {
    const std::string text = "call " + std::to_string(i);
    client->Start(kEcho, Bytes(text), HangDeadline(),
                  [&, text](Result<std::span<const std::byte>> reply) {
                    EXPECT_EQ(reply ? Text(*reply) : reply.error().ToString(), text);
                    EXPECT_TRUE(reactor_.InReactorThread());
                    if (++answered == kCalls) {
                      all.Notify();
                    }
                  });
  }
  ASSERT_TRUE(all.Wait(HangDeadline()));
}

TEST_F(RpcTest, ManyThreadsShareOneConnection) {
  const auto server = StartServer({});
  const auto client = Connect(server->port());
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        RpcReply reply;
        for (int i = 0; i < 300; ++i) {
          const std::string text =
              std::to_string(t * 1000 + i) + std::string(static_cast<std::size_t>(i), 'x');
          if (!client->Call(kEcho, Bytes(text), HangDeadline(), reply) ||
              Text(reply.body()) != text) {
            ++wrong;
          }
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(server->stats().accepted, 1U);
}

TEST_F(RpcTest, AServerThatIsNotThereIsUnavailableAtOnce) {
  const RefusingPort refusing;
  const auto client = Connect(refusing.port());
  RpcReply reply;
  for (int i = 0; i < 3; ++i) {
    const auto called = client->Call(kEcho, {}, HangDeadline(), reply);
    ASSERT_FALSE(called.has_value());
    EXPECT_EQ(called.error().code, ErrorCode::kUnavailable) << called.error().ToString();
    EXPECT_NE(called.error().message.find(std::to_string(refusing.port())), std::string::npos);
  }
}

TEST_F(RpcTest, AServerThatDoesNotAnswerIsATimeout) {
  auto listener = SocketListen("127.0.0.1", 0);
  ASSERT_TRUE(listener.has_value());
  const auto client = Connect(*LocalPort(listener->get()));
  RpcReply reply;
  const auto called = client->Call(kEcho, {}, In(std::chrono::milliseconds(50)), reply);
  ASSERT_FALSE(called.has_value());
  EXPECT_EQ(called.error().code, ErrorCode::kTimeout);
  Event ended;
  client->Start(
      kEcho, {}, In(std::chrono::milliseconds(50)), [&](Result<std::span<const std::byte>> answer) {
        EXPECT_EQ(answer ? ErrorCode::kInternal : answer.error().code, ErrorCode::kTimeout);
        ended.Notify();
      });
  EXPECT_TRUE(ended.Wait(HangDeadline()));
}

TEST_F(RpcTest, ACallerThatSpinsForLongerThanItsDeadlineStopsAtTheDeadline) {
  auto listener = SocketListen("127.0.0.1", 0);
  ASSERT_TRUE(listener.has_value());
  const auto client = Connect(*LocalPort(listener->get()), {.spin = kEndlessSpin});
  RpcReply reply;
  const auto called = client->Call(kEcho, {}, In(std::chrono::milliseconds(20)), reply);
  ASSERT_FALSE(called.has_value());
  EXPECT_EQ(called.error().code, ErrorCode::kTimeout);
}

TEST_F(RpcTest, ACancelledCallEndsAndStopEndsAll) {
  auto listener = SocketListen("127.0.0.1", 0);
  ASSERT_TRUE(listener.has_value());
  const auto client = Connect(*LocalPort(listener->get()));
  std::array<Event, 2> ended;
  std::array<ErrorCode, 2> codes{};
  std::array<RpcClient::Started, 2> calls;
  for (std::size_t i = 0; i < 2; ++i) {
    calls[i] =
        client->Start(kEcho, {}, Instant::max(), [&, i](Result<std::span<const std::byte>> answer) {
          codes[i] = answer ? ErrorCode::kInternal : answer.error().code;
          ended[i].Notify();
        });
  }
  calls[0].Cancel();
  ASSERT_TRUE(ended[0].Wait(HangDeadline()));
  EXPECT_EQ(codes[0], ErrorCode::kCancelled);
  EXPECT_FALSE(ended[1].IsSet());
  client->Stop();
  ASSERT_TRUE(ended[1].Wait(HangDeadline()));
  EXPECT_EQ(codes[1], ErrorCode::kCancelled);
  RpcReply reply;
  EXPECT_EQ(client->Call(kEcho, {}, HangDeadline(), reply).error().code, ErrorCode::kCancelled);
  calls[0].Cancel();  // Long over: nothing happens.
}

TEST_F(RpcTest, AWrongTokenIsRefusedInWordsAndCounted) {
  const auto server = StartServer({.token = "secret"});
  const auto wrong = Connect(server->port(), {.token = "guess"});
  RpcReply reply;
  const auto called = wrong->Call(kEcho, {}, HangDeadline(), reply);
  ASSERT_FALSE(called.has_value());
  EXPECT_EQ(called.error().code, ErrorCode::kPermissionDenied) << called.error().ToString();
  // It counts once the refusal is on its way.
  EXPECT_TRUE(WaitUntil([&] { return server->stats().closed_for(RpcClose::kWrongToken) == 1; }));
  const auto right = Connect(server->port(), {.token = "secret"});
  EXPECT_TRUE(right->Call(kEcho, {}, HangDeadline(), reply).has_value());
}

}  // namespace
}  // namespace mooncake::rpc
