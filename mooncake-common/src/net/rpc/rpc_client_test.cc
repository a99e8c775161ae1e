// The client against servers that are at some of their addresses, move, or leave in the middle.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/frame.h"
#include "mooncake-common/src/net/rpc/hello.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/standstill.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kEcho = 1;

std::unique_ptr<RpcServer> StartServer() {
  auto server = std::make_unique<RpcServer>(RpcServer::Options{.host = "127.0.0.1"});
  server->Register(kEcho,
                   [](auto body, ReplyWriter& reply, const PeerInfo&) { reply.Append(body); });
  EXPECT_TRUE(server->Start().has_value());
  return server;
}

SocketAddress AddressOf(const RpcServer& server) {
  return ResolveAddress("127.0.0.1", server.port()).value();
}

class RpcClientTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().has_value()); }
  // Calls until one is served; returns how many failed before.
  static int CallUntilServed(RpcClient& client) {
    RpcReply reply;
    const Instant limit = HangDeadline();
    for (int failed = 0; SteadyClock::Get().Now() < limit; ++failed) {
      const auto called = client.Call(kEcho, {}, HangDeadline(), reply);
      if (called) {
        return failed;
      }
      EXPECT_EQ(called.error().code, ErrorCode::kUnavailable) << called.error().ToString();
      std::this_thread::yield();
    }
    ADD_FAILURE() << "never served";
    return -1;
  }
  Reactor reactor_;
};

TEST_F(RpcClientTest, TriesEveryAddressOfANameWithoutPausesBetween) {
  const auto server = StartServer();
  const RefusingPort refusing;
  const auto client =
      RpcClient::Create(
          reactor_,
          {.host = "master",
           .port = 1,
           .lookup =
               [addresses = Addresses{refusing.address(), refusing.address(), AddressOf(*server)}](
                   const std::string&, std::uint16_t) -> Result<Addresses> { return addresses; },
           .backoff_first = std::chrono::hours(1),
           .backoff_most = std::chrono::hours(1)})
          .value();
  EXPECT_LE(CallUntilServed(*client), 2) << "one for each address that refuses";
  EXPECT_EQ(CallUntilServed(*client), 0);
}

TEST_F(RpcClientTest, FindsAServerThatHasMoved) {
  auto server = StartServer();
  struct Name {  // Shared, because nobody joins the thread of a lookup.
    Mutex mutex;
    SocketAddress address MC_GUARDED_BY(mutex);
    int asked MC_GUARDED_BY(mutex) = 0;
  };
  const auto name = std::make_shared<Name>();
  {
    const MutexLock lock(name->mutex);
    name->address = AddressOf(*server);
  }
  const auto asked = [&] {
    const MutexLock lock(name->mutex);
    return name->asked;
  };
  const auto client =
      RpcClient::Create(reactor_,
                        {.host = "master",
                         .port = 1,
                         .lookup = [name](const std::string&, std::uint16_t) -> Result<Addresses> {
                           const MutexLock lock(name->mutex);
                           ++name->asked;
                           return Addresses{name->address};
                         }})
          .value();
  EXPECT_EQ(CallUntilServed(*client), 0);
  EXPECT_EQ(asked(), 1);
  const auto next = StartServer();
  {
    const MutexLock lock(name->mutex);
    name->address = AddressOf(*next);
  }
  server->Stop();
  (void)CallUntilServed(*client);
  EXPECT_GE(asked(), 2);
  EXPECT_EQ(next->stats().requests, 1U);
}

// A server made of bare bytes, which the test drives.
class RawServer {
 public:
  [[nodiscard]] std::uint16_t port() const { return LocalPort(listener_.get()).value(); }
  void Accept() {
    ASSERT_TRUE(WaitUntil([&] {
      peer_ = SocketAccept(listener_.get(), nullptr).value();
      return static_cast<bool>(peer_);
    }));
  }
  void Send(const FrameHeader& header, std::span<const std::byte> body) {
    std::vector<std::byte> bytes(FrameBytes(body.size()));
    FrameHeader full = header;
    full.body_bytes = static_cast<std::uint32_t>(body.size());
    EncodeFrameHeader(full, std::span(bytes).first<kFrameHeaderBytes>());
    std::ranges::copy(body, bytes.begin() + kFrameHeaderBytes);
    ASSERT_EQ(SocketWrite(peer_.get(), std::span<const std::byte>(bytes)).bytes, bytes.size());
  }
  // The next frame's header, or nothing when none comes.
  std::optional<FrameHeader> Read() {
    for (;;) {
      const auto frame = DecodeFrame(got_);
      if (!frame) {
        return std::nullopt;
      }
      if (frame->bytes > 0) {
        const FrameHeader header = frame->header;
        got_.erase(got_.begin(), got_.begin() + static_cast<std::ptrdiff_t>(frame->bytes));
        return header;
      }
      pollfd wait{.fd = peer_.get(), .events = POLLIN, .revents = 0};
      std::array<std::byte, 4096> part{};
      if (poll(&wait, 1, kHangLimitMs) != 1) {
        return std::nullopt;
      }
      const IoOutcome read = SocketRead(peer_.get(), part);
      if (read.kind != IoOutcome::Kind::kMoved && read.kind != IoOutcome::Kind::kWouldBlock) {
        return std::nullopt;
      }
      got_.insert(got_.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(read.bytes));
    }
  }
  void Reset() {
    const linger none{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(setsockopt(peer_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    peer_.Reset();
  }

 private:
  const UniqueFd listener_ = SocketListen("127.0.0.1", 0).value();
  UniqueFd peer_;
  std::vector<std::byte> got_;
};

struct Outcome {
  Event ended;
  std::optional<Error> error;
  RpcClient::Callback Callback() {
    return [this](Result<std::span<const std::byte>> reply) {
      if (!reply) {
        error = reply.error();
      }
      ended.Notify();
    };
  }
};

// Goal: what a server has answered before it goes is heard, also by a client that notices its end
// by sending. Method: the reactor stands still while the answer and the reset arrive, so that the
// next call's thread meets them when it sends.
TEST_F(RpcClientTest, HearsAnswersThatArrivedBeforeASendFailed) {
  RawServer server;
  const auto client =
      RpcClient::Create(reactor_, {.host = "127.0.0.1", .port = server.port()}).value();
  Outcome first;
  client->Start(kEcho, {}, HangDeadline(), first.Callback());
  server.Accept();
  const auto hello = server.Read();
  ASSERT_TRUE(hello.has_value());
  ASSERT_EQ(hello->method, kHelloMethod);
  server.Send({.method = kHelloMethod, .flags = FrameFlags::kReply},
              EncodeWelcome({.version = 1, .software = "raw"}));
  const auto request = server.Read();
  ASSERT_TRUE(request.has_value());

  Standstill standstill(reactor_);
  server.Send({.method = kEcho, .flags = FrameFlags::kReply, .id = request->id}, {});
  server.Reset();
  Outcome second;
  client->Start(kEcho, {}, HangDeadline(), second.Callback());
  standstill.GoOn();
  ASSERT_TRUE(first.ended.Wait(HangDeadline()));
  ASSERT_TRUE(second.ended.Wait(HangDeadline()));
  EXPECT_FALSE(first.error.has_value()) << first.error->ToString();
  ASSERT_TRUE(second.error.has_value());
  EXPECT_EQ(second.error->code, ErrorCode::kUnavailable);
}

TEST_F(RpcClientTest, HearsARefusalInWordsThatCameBeforeTheEnd) {
  RawServer server;
  const auto client =
      RpcClient::Create(reactor_, {.host = "127.0.0.1", .port = server.port()}).value();
  Standstill standstill(reactor_);
  Outcome call;
  client->Start(kEcho, {}, HangDeadline(),
                call.Callback());  // Connected by the kernel, hello unsent.
  server.Accept();
  server.Send({.method = kHelloMethod, .flags = FrameFlags::kReply},
              EncodeWelcome({.software = "raw",
                             .refusal = Error{ErrorCode::kPermissionDenied, "wrong token"}}));
  server.Reset();
  standstill.GoOn();
  ASSERT_TRUE(call.ended.Wait(HangDeadline()));
  ASSERT_TRUE(call.error.has_value());
  EXPECT_EQ(call.error->code, ErrorCode::kPermissionDenied) << call.error->ToString();
}

}  // namespace
}  // namespace mooncake::rpc
