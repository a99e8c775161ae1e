// Peers that misbehave: what they send ends their own connection, for a reason that is counted, and
// nobody else's; what they do not read or say holds up nobody.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/frame.h"
#include "mooncake-common/src/net/rpc/raw_peer.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kEcho = 1;
constexpr std::uint16_t kGrow = 2;  // Answers with as many bytes as asked for.

class HostilePeer : public testing::Test {
 protected:
  void Start(RpcServer::Options options = {}) {
    options.host = "127.0.0.1";
    server_ = std::make_unique<RpcServer>(options);
    server_->Register(kEcho,
                      [](auto body, ReplyWriter& reply, const PeerInfo&) { reply.Append(body); });
    server_->Register(kGrow, [](auto body, ReplyWriter& reply, const PeerInfo&) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, body.data(), std::min(body.size(), sizeof bytes));
      reply.Append(std::vector<std::byte>(bytes));
    });
    ASSERT_TRUE(server_->Start().has_value());
    ASSERT_TRUE(reactor_.Start().has_value());
    client_ = RpcClient::Create(reactor_, {.host = "127.0.0.1", .port = server_->port()}).value();
    // Where the server grants little time for a hello, a client that was held up comes again.
    RpcReply reply;
    ASSERT_TRUE(
        WaitUntil([&] { return client_->Call(kEcho, {}, HangDeadline(), reply).has_value(); }));
  }
  void ExpectServed() {
    RpcReply reply;
    const std::array<std::byte, 3> body{std::byte{1}, std::byte{2}, std::byte{3}};
    const auto called = client_->Call(kEcho, body, HangDeadline(), reply);
    ASSERT_TRUE(called.has_value()) << called.error().ToString();
    EXPECT_TRUE(std::ranges::equal(reply.body(), body));
  }
  void AwaitClosed(RpcClose reason, std::uint64_t times = 1) {
    EXPECT_TRUE(WaitUntil([&] { return server_->stats().closed_for(reason) >= times; }))
        << RpcCloseName(reason);
    EXPECT_EQ(server_->stats().closed_for(reason), times);
  }

  Reactor reactor_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcClient> client_;
};

TEST_F(HostilePeer, ThatSaysSomethingElseThanHelloIsClosed) {
  Start();
  RawPeer http(server_->port());
  http.Send(std::as_bytes(std::span(std::string_view("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))));
  EXPECT_FALSE(http.Read().has_value());
  RawPeer hasty(server_->port());
  hasty.Send(FrameOf({.method = kEcho, .id = 1}, {}));
  EXPECT_FALSE(hasty.Read().has_value());
  AwaitClosed(RpcClose::kHelloExpected);
  RawPeer garbled(server_->port());
  garbled.Send(FrameOf({.method = kHelloMethod}, std::vector<std::byte>(40, std::byte{7})));
  EXPECT_FALSE(garbled.Read().has_value());
  AwaitClosed(RpcClose::kHelloExpected, 2);
  // A stranger gets no memory: its hello is refused by its length, before it has arrived.
  RawPeer large(server_->port());
  std::array<std::byte, kFrameHeaderBytes> header{};
  EncodeFrameHeader({.body_bytes = kMaxHelloBytes + 1, .method = kHelloMethod}, header);
  large.Send(header);
  EXPECT_FALSE(large.Read().has_value());
  AwaitClosed(RpcClose::kHelloExpected, 3);
  EXPECT_EQ(server_->stats().closed_for(RpcClose::kMalformedFrame), 1U);
  ExpectServed();
}

TEST_F(HostilePeer, ThatSendsFramesOfNoKindIsClosed) {
  Start();
  std::uint64_t closed = 0;
  std::vector<std::byte> too_large(kFrameHeaderBytes);
  EncodeFrameHeader({.body_bytes = kMaxBodyBytes + 1, .method = kEcho},
                    std::span(too_large).first<kFrameHeaderBytes>());
  std::vector<std::byte> flags = FrameOf({.method = kEcho}, {});
  flags[6] = std::byte{2};
  std::vector<std::byte> padding = FrameOf({.method = kEcho}, std::array{std::byte{1}});
  padding.back() = std::byte{1};
  std::vector<std::byte> reply =
      FrameOf({.method = kEcho, .flags = FrameFlags::kReply, .id = 1}, {});
  for (const auto* bytes : {&too_large, &flags, &padding, &reply}) {
    RawPeer peer(server_->port());
    peer.Send(HelloFrame());
    ASSERT_TRUE(peer.Read().has_value());
    peer.Send(*bytes);
    EXPECT_FALSE(peer.Read().has_value());
    AwaitClosed(RpcClose::kMalformedFrame, ++closed);
  }
  ExpectServed();
}

TEST_F(HostilePeer, ThatLeavesInTheMiddleOfAFrameIsForgotten) {
  Start();
  const std::uint64_t open = server_->stats().open;
  {
    RawPeer peer(server_->port());
    peer.Send(HelloFrame());
    ASSERT_TRUE(peer.Read().has_value());
    const auto frame = FrameOf({.method = kEcho, .id = 1}, std::vector<std::byte>(100));
    peer.Send(std::span(frame).first(50));
  }
  AwaitClosed(RpcClose::kPeerClosed);
  EXPECT_EQ(server_->stats().open, open);
  EXPECT_EQ(server_->stats().requests, 1U) << "half a request is none";
}

TEST_F(HostilePeer, ThatSaysNothingIsClosedAndHoldsUpNobody) {
  Start({.hello_timeout = std::chrono::milliseconds(50)});
  const std::uint64_t accepted = server_->stats().accepted + 1;
  RawPeer silent(server_->port());
  ASSERT_TRUE(WaitUntil([&] { return server_->stats().accepted == accepted; }));
  ExpectServed();
  EXPECT_FALSE(silent.Read().has_value());
  EXPECT_TRUE(WaitUntil([&] { return server_->stats().closed_for(RpcClose::kHelloTimeout) > 0; }));
  ExpectServed();
  EXPECT_EQ(server_->stats().accepted, accepted) << "who did say hello stays, however silent";
}

TEST_F(HostilePeer, OfAnotherVersionIsToldInWords) {
  Start({.software = "server 9"});
  RawPeer peer(server_->port());
  peer.Send(HelloFrame({.min_version = 7, .max_version = 8, .software = "client 8"}));
  const auto answer = peer.Read();
  ASSERT_TRUE(answer.has_value());
  const auto welcome = DecodeWelcome(*answer);
  ASSERT_TRUE(welcome.has_value());
  ASSERT_TRUE(welcome->refusal.has_value());
  EXPECT_EQ(welcome->refusal->code, ErrorCode::kNotSupported);
  EXPECT_NE(welcome->refusal->message.find("client 8"), std::string::npos);
  EXPECT_NE(welcome->refusal->message.find("server 9"), std::string::npos);
  EXPECT_FALSE(peer.Read().has_value());
  AwaitClosed(RpcClose::kVersionMismatch);
}

TEST_F(HostilePeer, ThatDoesNotReadIsPausedUntilItDoes) {
  constexpr std::uint64_t kAnswerBytes = 1 << 20;
  Start({.max_unread_bytes = 2 << 20});
  RawPeer peer(server_->port());
  peer.Send(HelloFrame());
  ASSERT_TRUE(peer.Read().has_value());
  constexpr std::uint64_t kRequests = 40;
  for (std::uint64_t id = 0; id < kRequests; ++id) {
    peer.Send(FrameOf({.method = kGrow, .id = id}, std::as_bytes(std::span(&kAnswerBytes, 1))));
  }
  ASSERT_TRUE(WaitUntil([&] { return server_->stats().pauses > 0; }));
  ExpectServed();
  EXPECT_LT(server_->stats().requests, kRequests) << "answers would pile up without bound";
  const std::size_t total = kRequests * FrameBytes(kAnswerBytes);
  std::size_t read = 0;
  EXPECT_TRUE(WaitUntil([&] {
    while (const std::size_t bytes = peer.Drain()) {
      read += bytes;
    }
    return read >= total;
  }));
  ExpectServed();
}

// Goal: no bytes whatever make a server fall over or stop serving others. Method: valid streams
// with random bytes changed, sent in random pieces; then an honest client asks.
TEST_F(HostilePeer, WithFlippedBytesHarmsOnlyItself) {
  Start();
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    std::vector<std::byte> stream = HelloFrame();
    const std::size_t hello_bytes = stream.size();
    for (std::uint64_t id = 1; id <= 5; ++id) {
      const auto frame =
          FrameOf({.method = kEcho, .id = id}, std::vector<std::byte>(rng.Uniform(200)));
      stream.insert(stream.end(), frame.begin(), frame.end());
    }
    const std::size_t from = rng.Chance(1, 2) ? 0 : hello_bytes;
    for (std::uint64_t flips = rng.Uniform(4) + 1; flips > 0; --flips) {
      stream[from + rng.Uniform(stream.size() - from)] ^=
          static_cast<std::byte>(rng.Between(1, 255));
    }
    RawPeer peer(server_->port());
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t piece = std::min<std::size_t>(1 + rng.Uniform(100), stream.size() - at);
      peer.Send(std::span(stream).subspan(at, piece));
      at += piece;
    }
  }
  ExpectServed();
}

// A server made of bare bytes, for clients. However often they come again, it says the same.
class NonsenseServer {
 public:
  explicit NonsenseServer(std::vector<std::byte> says)
      : says_(std::move(says)), thread_([this](const std::stop_token& stop) { Serve(stop); }) {}

  [[nodiscard]] std::uint16_t port() const { return LocalPort(listener_.get()).value(); }

 private:
  void Serve(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { shutdown(listener_.get(), SHUT_RDWR); });
    while (!stop.stop_requested()) {
      pollfd wait{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      poll(&wait, 1, kHangLimitMs);
      const auto fd = SocketAccept(listener_.get(), nullptr);
      if (!fd || !*fd) {
        continue;
      }
      (void)SocketWrite(fd->get(), std::span<const std::byte>(says_));
      pollfd gone{.fd = fd->get(), .events = POLLRDHUP, .revents = 0};
      poll(&gone, 1, kHangLimitMs);
    }
  }

  const std::vector<std::byte> says_;
  const UniqueFd listener_ = SocketListen("127.0.0.1", 0).value();
  std::jthread thread_;
};

TEST(HostileServer, ThatAnswersNonsenseFailsTheCallInWords) {
  const std::vector<std::byte> nonsense(64, std::byte{0xee});
  std::vector<std::byte> after_welcome =
      FrameOf({.method = kHelloMethod, .flags = FrameFlags::kReply},
              EncodeWelcome({.version = 1, .software = "fake"}));
  after_welcome.insert(after_welcome.end(), nonsense.begin(), nonsense.end());
  Reactor reactor;
  ASSERT_TRUE(reactor.Start().has_value());
  for (const auto& says : {nonsense, after_welcome}) {
    const NonsenseServer server(says);
    const auto client =
        RpcClient::Create(reactor, {.host = "127.0.0.1", .port = server.port()}).value();
    RpcReply reply;
    const auto called = client->Call(kEcho, {}, HangDeadline(), reply);
    ASSERT_FALSE(called.has_value());
    EXPECT_EQ(called.error().code, ErrorCode::kMalformed) << called.error().ToString();
    EXPECT_NE(called.error().message.find(std::to_string(server.port())), std::string::npos);
  }
}

TEST_F(HostilePeer, IsNotNeededForAnOrderlyStop) {
  Start();
  // What was asked before Stop() is answered; what is asked later is not.
  std::atomic<int> answered{0};
  std::atomic<int> failed{0};
  constexpr int kCalls = 100;
  for (int i = 0; i < kCalls; ++i) {
    client_->Start(kEcho, {}, HangDeadline(), [&](Result<std::span<const std::byte>> reply) {
      (reply ? answered : failed).fetch_add(1);
    });
  }
  server_->Stop();
  server_->Stop();
  ASSERT_TRUE(WaitUntil([&] { return answered + failed == kCalls; }));
  EXPECT_EQ(static_cast<std::uint64_t>(answered.load()) + 1, server_->stats().requests)
      << "whatever the server did its caller heard of";
  RpcReply reply;
  EXPECT_EQ(client_->Call(kEcho, {}, HangDeadline(), reply).error().code, ErrorCode::kUnavailable);
}

TEST_F(HostilePeer, MaySendExactly64MiB) {
  Start();
  RpcReply reply;
  std::vector<std::byte> body(kMaxBodyBytes);
  body.front() = body.back() = std::byte{5};
  ASSERT_TRUE(client_->Call(kEcho, body, HangDeadline(), reply).has_value());
  EXPECT_TRUE(std::ranges::equal(reply.body(), body));
  const std::uint64_t one_too_many = kMaxBodyBytes + 1;
  const auto called =
      client_->Call(kGrow, std::as_bytes(std::span(&one_too_many, 1)), HangDeadline(), reply);
  ASSERT_FALSE(called.has_value());
  EXPECT_EQ(called.error().code, ErrorCode::kExhausted) << called.error().ToString();
  ExpectServed();
}

}  // namespace
}  // namespace mooncake::rpc
