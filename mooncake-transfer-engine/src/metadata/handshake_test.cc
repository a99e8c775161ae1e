// Server and client over real sockets on this host.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/metadata/handshake_client.h"
#include "mooncake-transfer-engine/src/metadata/handshake_server.h"
#include "mooncake-transfer-engine/src/metadata/notify_queue.h"

namespace mooncake::transfer {
namespace {

using std::string_literals::operator""s;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A client that sends what it likes, when it likes.
class RawPeer {
 public:
  explicit RawPeer(std::uint16_t port, const std::string& host = "127.0.0.1") {
    auto address = ResolveAddress(host, port);
    if (address) {
      auto fd = SocketConnect(*address);
      if (fd) {
        fd_ = std::move(*fd);
        Wait(POLLOUT);
      }
    }
  }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const IoOutcome outcome = SocketWrite(fd_.get(), std::as_bytes(std::span(bytes)));
      if (outcome.kind == IoOutcome::Kind::kFailed) {
        return false;
      }
      bytes.remove_prefix(outcome.bytes);
      if (outcome.kind == IoOutcome::Kind::kWouldBlock && !Wait(POLLOUT)) {
        return false;
      }
    }
    return true;
  }

  // Everything until the server ends its side, or resets.
  std::string ReadToEnd() {
    std::string all;
    std::array<std::byte, 4096> buffer;
    for (;;) {
      const IoOutcome outcome = SocketRead(fd_.get(), std::span(buffer));
      if (outcome.kind == IoOutcome::Kind::kMoved) {
        all.append(reinterpret_cast<const char*>(buffer.data()), outcome.bytes);
      } else if (outcome.kind != IoOutcome::Kind::kWouldBlock) {
        return all;
      } else if (!Wait(POLLIN)) {
        ADD_FAILURE() << "the server neither answers nor closes";
        return all;
      }
    }
  }

  void Close() { fd_.Reset(); }

 private:
  bool Wait(short events) const {
    pollfd entry{.fd = fd_.get(), .events = events, .revents = 0};
    return poll(&entry, 1, kHangLimitMs) == 1;
  }

  UniqueFd fd_;
};

// A server that reads a request and then does `reply`.
class BadServer {
 public:
  explicit BadServer(std::function<void(int fd)> reply)
      : listener_(SocketListen("127.0.0.1", 0).value()), thread_([this, reply = std::move(reply)] {
          pollfd entry{.fd = listener_.get(), .events = POLLIN, .revents = 0};
          if (poll(&entry, 1, kHangLimitMs) != 1) {
            return;
          }
          const UniqueFd fd = SocketAccept(listener_.get(), nullptr).value();
          std::array<std::byte, 4096> buffer;
          entry.fd = fd.get();
          if (poll(&entry, 1, kHangLimitMs) == 1) {
            (void)SocketRead(fd.get(), std::span(buffer));
          }
          reply(fd.get());
        }) {}
  ~BadServer() { thread_.join(); }
  [[nodiscard]] std::uint16_t port() const { return LocalPort(listener_.get()).value(); }

 private:
  UniqueFd listener_;
  std::thread thread_;
};

void Write(int fd, std::string_view bytes) {
  (void)SocketWrite(fd, std::as_bytes(std::span(bytes)));
}

SegmentDescriptor Descriptor(const std::string& name) {
  return {.name = name,
          .buffers = {{.name = name, .address = 4096, .length_bytes = 8}},
          .tcp_data_host = "127.0.0.1",
          .tcp_data_port = 7,
          .tcp_proto_version = 2,
          .timestamp = "t"};
}

class Handshake : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().has_value()); }
  void TearDown() override {
    server_.reset();
    reactor_.Stop();
  }

  std::uint16_t Serve(HandshakeServerOptions options = {}) {
    options.ports = {.min = 0, .max = 0};
    if (options.idle_timeout == HandshakeServerOptions().idle_timeout) {
      options.idle_timeout = kHangLimit;  // Who is silent stays, unless that is the question.
    }
    server_ = std::make_unique<HandshakeServer>(
        reactor_, options,
        HandshakeHandlers{.describe = [this] { return describe_; },
                          .name = [] { return std::string("peer"); },
                          .notify = [this](Notification n) { return queue_.Push(std::move(n)); }});
    Rng rng(1);
    const auto started = server_->Start(rng);
    EXPECT_TRUE(started.has_value()) << started.error().message;
    return server_->port();
  }

  // Whether the server comes to hold `count` connections.
  [[nodiscard]] bool HoldsConnections(std::size_t count) const {
    return WaitUntil([&] { return server_->connections() == count; });
  }

  Reactor reactor_;
  std::string describe_ = EncodeDescriptor(Descriptor("peer"));
  NotifyQueue queue_;
  std::unique_ptr<HandshakeServer> server_;
};

// What the published package sends and answers, byte for byte.
struct Transcript {
  std::string_view name;
  std::string request;
  std::string reply;
};

std::string ConnectionJson() { return std::string(kConnectionReply) + "\n"; }

TEST_F(Handshake, AnswersLikeThePublishedPackage) {
  describe_ = kNoDescriptor;
  const std::uint16_t port = Serve();
  const std::string length_of_connection(1, static_cast<char>(kConnectionReply.size() + 2));
  const std::string length_untyped(1, static_cast<char>(kConnectionReply.size() + 1));
  const std::string zeros(7, '\0');
  for (const Transcript& one : {
           Transcript{"probe", "\x04\x00\x00\x00\x00\x00\x00\x00\x03{}\n"s,
                      "\x16\x00\x00\x00\x00\x00\x00\x00\x03{\"status\":\"success\"}\n"s},
           Transcript{"metadata with a central store", "\x04\x00\x00\x00\x00\x00\x00\x00\x01{}\n"s,
                      "\x06\x00\x00\x00\x00\x00\x00\x00\x01null\n"s},
           Transcript{
               "notify",
               "\x21\x00\x00\x00\x00\x00\x00\x00\x02{\"name\":\"n1\",\"notify_msg\":\"m1\"}\n"s,
               "\x24\x00\x00\x00\x00\x00\x00\x00\x02{\"name\":\"\",\"notify_msg\":\"success\"}\n"s},
           Transcript{"connection", "\x04\x00\x00\x00\x00\x00\x00\x00\x00{}\n"s,
                      length_of_connection + zeros + "\x00"s + ConnectionJson()},
           Transcript{"a type above 3", "\x04\x00\x00\x00\x00\x00\x00\x00\x04{}\n"s,
                      length_untyped + zeros + ConnectionJson()},
           Transcript{"no type", "\x03\x00\x00\x00\x00\x00\x00\x00{}\n"s,
                      length_untyped + zeros + ConnectionJson()},
           Transcript{"no newline", "\x03\x00\x00\x00\x00\x00\x00\x00\x03{}"s,
                      "\x16\x00\x00\x00\x00\x00\x00\x00\x03{\"status\":\"success\"}\n"s},
           Transcript{"length 0", "\x00\x00\x00\x00\x00\x00\x00\x00"s, ""},
           Transcript{"over the limit", "\x01\x00\x10\x00\x00\x00\x00\x00\x03"s, ""},
           Transcript{"bad JSON", "\x04\x00\x00\x00\x00\x00\x00\x00\x03{:\n"s, ""},
           Transcript{"a notification that is none", "\x04\x00\x00\x00\x00\x00\x00\x00\x02[]\n"s,
                      ""},
       }) {
    SCOPED_TRACE(one.name);
    RawPeer peer(port);
    ASSERT_TRUE(peer.Send(one.request));
    EXPECT_EQ(peer.ReadToEnd(), one.reply);
  }
  EXPECT_EQ(queue_.Take(), (std::vector<Notification>{{.name = "n1", .message = "m1"}}));
}

TEST_F(Handshake, TakesARequestByteByByteAndIgnoresWhatFollows) {
  const std::uint16_t port = Serve();
  RawPeer peer(port);
  for (const char byte : EncodeHandshake(HandshakeType::kProbe, kProbeRequest) + "more") {
    ASSERT_TRUE(peer.Send(std::string_view(&byte, 1)));
  }
  EXPECT_EQ(peer.ReadToEnd(), EncodeHandshake(HandshakeType::kProbe, kProbeReply));
  EXPECT_TRUE(HoldsConnections(1));  // Waits for the peer to close.
  peer.Close();
  EXPECT_TRUE(HoldsConnections(0));
}

TEST_F(Handshake, ServesManyWhileOthersAreSilent) {
  const std::uint16_t port = Serve();
  std::vector<RawPeer> silent;
  silent.reserve(20);
  for (int i = 0; i < 20; ++i) {
    silent.emplace_back(port);
    ASSERT_TRUE(silent.back().Send(std::string(static_cast<std::size_t>(i) % 8, '\x01')));
  }
  ASSERT_TRUE(HoldsConnections(20));
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const HandshakeClient client;
      for (int i = 0; i < 20; ++i) {
        good += client.Probe("127.0.0.1", port).has_value() ? 1 : 0;
        good += client.SendNotify("127.0.0.1", port, {.name = "n", .message = "m"}) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(good, 320);
  EXPECT_EQ(queue_.Take().size(), 160U);
  EXPECT_TRUE(HoldsConnections(20));
}

TEST_F(Handshake, ClosesWhoStaysSilent) {
  const std::uint16_t port = Serve({.idle_timeout = milliseconds(20)});
  RawPeer nothing(port);
  RawPeer half(port);
  (void)half.Send("\x04\x00"s);
  EXPECT_EQ(nothing.ReadToEnd(), "");
  EXPECT_EQ(half.ReadToEnd(), "");
  // Asks, and does not close after the reply. On a busy machine it may be late, and asks again.
  EXPECT_TRUE(WaitUntil([&] {
    RawPeer answered(port);
    (void)answered.Send(EncodeHandshake(HandshakeType::kProbe, kProbeRequest));
    return answered.ReadToEnd() == EncodeHandshake(HandshakeType::kProbe, kProbeReply);
  }));
  EXPECT_TRUE(HoldsConnections(0));
}

TEST_F(Handshake, ClosesWhoTrickles) {
  const std::uint16_t port = Serve({.total_timeout = milliseconds(50)});
  RawPeer peer(port);
  ASSERT_TRUE(peer.Send("\xff\xff\x00\x00\x00\x00\x00\x00\x03"s));
  EXPECT_TRUE(WaitUntil([&] { return !peer.Send(" "); }));
  EXPECT_TRUE(HoldsConnections(0));
}

TEST_F(Handshake, TheOldestMakesRoomWhenThereAreTooMany) {
  const std::uint16_t port = Serve({.max_connections = 3});
  std::vector<RawPeer> silent;
  silent.reserve(4);
  for (int i = 0; i < 4; ++i) {
    silent.emplace_back(port);
  }
  EXPECT_EQ(silent[0].ReadToEnd(), "");
  EXPECT_TRUE(HoldsConnections(3));
  EXPECT_TRUE(HandshakeClient().Probe("127.0.0.1", port).has_value());
}

TEST_F(Handshake, TheOldestMakesRoomWhenTooMuchIsHeld) {
  const std::uint16_t port = Serve({.max_buffered_bytes = 3000});
  const std::string part = "\xff\xff\x00\x00\x00\x00\x00\x00\x03"s + std::string(1391, ' ');
  RawPeer first(port);
  ASSERT_TRUE(first.Send(part));
  RawPeer second(port);
  ASSERT_TRUE(second.Send(part));
  RawPeer third(port);
  ASSERT_TRUE(third.Send(part));
  EXPECT_EQ(first.ReadToEnd(), "");
  EXPECT_TRUE(HoldsConnections(2));
  EXPECT_TRUE(HandshakeClient().Probe("127.0.0.1", port).has_value());
}

TEST_F(Handshake, SendsALongReplyWholeToASlowReader) {
  SegmentDescriptor big = Descriptor("big");
  big.buffers.assign(100'000, big.buffers[0]);
  describe_ = EncodeDescriptor(big);
  const std::uint16_t port = Serve();
  RawPeer slow(port);
  ASSERT_TRUE(slow.Send(EncodeHandshake(HandshakeType::kMetadata, "{}")));
  const HandshakeClient client;
  EXPECT_TRUE(client.Probe("127.0.0.1", port).has_value());  // Meanwhile.
  EXPECT_EQ(slow.ReadToEnd(), EncodeHandshake(HandshakeType::kMetadata, describe_));
  const auto fetched = client.FetchDescriptor("127.0.0.1", port, big);
  ASSERT_TRUE(fetched.has_value()) << fetched.error().message;
  EXPECT_EQ(fetched->buffers.size(), 100'000U);
}

TEST_F(Handshake, IsReachedOverBothFamilies) {
  const std::uint16_t port = Serve();
  for (const char* host : {"127.0.0.1", "localhost"}) {
    EXPECT_TRUE(HandshakeClient().Probe(host, port).has_value()) << host;
  }
  const auto v6 = SocketListen("::1", 0);
  if (!v6) {
    GTEST_SKIP() << "no IPv6 here: " << v6.error().message;
  }
  for (const char* host : {"::1", "[::1]"}) {
    const auto probed = HandshakeClient().Probe(host, port);
    EXPECT_TRUE(probed.has_value()) << probed.error().message;
  }
}

TEST_F(Handshake, FetchesWhatThePeerDescribes) {
  const std::uint16_t port = Serve();
  const auto fetched = HandshakeClient().FetchDescriptor("127.0.0.1", port, Descriptor("me"));
  ASSERT_TRUE(fetched.has_value()) << fetched.error().message;
  EXPECT_EQ(fetched->name, "peer");
}

TEST_F(Handshake, TellsItsNameToWhoAsks) {
  const std::uint16_t port = Serve();
  EXPECT_EQ(HandshakeClient().AskName("127.0.0.1", port), "peer");
  const BadServer old(
      [](int fd) { Write(fd, EncodeHandshake(HandshakeType::kProbe, kProbeReply)); });
  EXPECT_EQ(HandshakeClient().AskName("127.0.0.1", old.port()), "");
}

TEST_F(Handshake, SaysThatAPeerUsesACentralStore) {
  describe_ = kNoDescriptor;
  const std::uint16_t port = Serve();
  const auto fetched = HandshakeClient().FetchDescriptor("127.0.0.1", port, Descriptor("me"));
  ASSERT_FALSE(fetched.has_value());
  EXPECT_EQ(fetched.error().code, ErrorCode::kNotFound);
  EXPECT_NE(fetched.error().message.find("metadata server"), std::string::npos);
}

TEST_F(Handshake, SaysThatAPeersQueueIsFull) {
  const std::uint16_t port = Serve();
  while (queue_.Push({.name = "", .message = std::string(std::size_t{1} << 20, 'm')})) {
  }
  const auto sent = HandshakeClient().SendNotify("127.0.0.1", port, {.name = "n", .message = "m"});
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().code, ErrorCode::kExhausted);
  (void)queue_.Take();
  EXPECT_TRUE(HandshakeClient().SendNotify("127.0.0.1", port, {.name = "n", .message = "m"}));
}

TEST_F(Handshake, StopsWithPeersConnectedAndTwice) {
  const std::string host = OwnLoopbackHost();
  const std::uint16_t port = Serve({.host = host});
  RawPeer silent(port, host);
  ASSERT_TRUE(HoldsConnections(1));
  server_->Stop();
  EXPECT_EQ(silent.ReadToEnd(), "");
  server_->Stop();
  const auto probed = HandshakeClient().Probe(host, port);
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(probed.error().message.find(host + ":" + std::to_string(port)), std::string::npos)
      << probed.error().message;
  EXPECT_NE(probed.error().message.find("always this host"), std::string::npos);
}

TEST_F(Handshake, StopsAfterItsReactorDid) {
  const std::uint16_t port = Serve();
  RawPeer silent(port);
  ASSERT_TRUE(HoldsConnections(1));
  reactor_.Stop();
  server_->Stop();
  EXPECT_EQ(silent.ReadToEnd(), "");
}

TEST(HandshakeClient, NamesWhatIsWrongWithAReply) {
  struct Case {
    std::string_view reply;
    ErrorCode code;
  };
  const std::string other_type = EncodeHandshake(HandshakeType::kProbe, kProbeReply);
  const std::string bad_json = EncodeHandshake(HandshakeType::kMetadata, "{");
  for (const Case& one :
       {Case{"", ErrorCode::kUnavailable}, Case{"\x05", ErrorCode::kUnavailable},
        Case{other_type, ErrorCode::kMalformed}, Case{bad_json, ErrorCode::kMalformed},
        Case{"SSH-2.0-OpenSSH", ErrorCode::kMalformed}}) {
    const BadServer server([&one](int fd) { Write(fd, one.reply); });
    const auto fetched =
        HandshakeClient().FetchDescriptor("127.0.0.1", server.port(), Descriptor("me"));
    ASSERT_FALSE(fetched.has_value());
    EXPECT_EQ(fetched.error().code, one.code) << fetched.error().message;
    EXPECT_NE(fetched.error().message.find(std::to_string(server.port())), std::string::npos);
  }
}

TEST(HandshakeClient, GivesUpOnASilentPeer) {
  std::atomic<bool> done = false;
  const BadServer server([&done](int) { done.wait(false); });
  const auto probed =
      HandshakeClient({.probe_timeout = milliseconds(20)}).Probe("127.0.0.1", server.port());
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kTimeout);
  done = true;
  done.notify_all();
}

TEST(HandshakeClient, EndsItsCallsWhenItIsInterrupted) {
  std::atomic<bool> asked = false;
  std::atomic<bool> done = false;
  const BadServer server([&](int) {
    asked = true;
    done.wait(false);
  });
  HandshakeClient client;
  Result<void> sent;
  std::jthread sender([&] { sent = client.SendNotify("127.0.0.1", server.port(), {}); });
  EXPECT_TRUE(WaitUntil([&] { return asked.load(); }));
  client.Interrupt();
  sender.join();
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().code, ErrorCode::kCancelled) << sent.error().message;
  EXPECT_EQ(client.Probe("127.0.0.1", server.port()).error().code, ErrorCode::kCancelled);
  done = true;
  done.notify_all();
}

// The lookup is left behind: what it uses lives as long as it does.
TEST(HandshakeClient, GivesUpOnASilentNameServer) {
  const auto done = std::make_shared<std::atomic<bool>>(false);
  const HandshakeClient client(
      {.connect_timeout = milliseconds(20), .lookup = [done](const std::string&, std::uint16_t) {
         done->wait(false);
         return Result<Addresses>(Fail(ErrorCode::kDns, "too late"));
       }});
  const auto probed = client.Probe("a-name", 1);
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kTimeout) << probed.error().message;
  *done = true;
  done->notify_all();
}

TEST(HandshakeClient, TriesEveryAddressOfAName) {
  const BadServer server(
      [](int fd) { Write(fd, EncodeHandshake(HandshakeType::kProbe, kProbeReply)); });
  EXPECT_TRUE(HandshakeClient().Probe("localhost", server.port()).has_value());
}

TEST(HandshakeClient, LeavesItsBuffersOutOfALongRequest) {
  SegmentDescriptor own = Descriptor("me");
  own.buffers.assign(20'000, own.buffers[0]);
  const BadServer server([](int fd) {
    Write(fd, EncodeHandshake(HandshakeType::kMetadata, EncodeDescriptor(Descriptor("p"))));
  });
  const auto fetched = HandshakeClient().FetchDescriptor("127.0.0.1", server.port(), own);
  EXPECT_TRUE(fetched.has_value()) << fetched.error().message;
}

TEST(NotifyQueue, RefusesBeyondItsBounds) {
  NotifyQueue queue;
  for (std::size_t i = 0; i < NotifyQueue::kMaxCount; ++i) {
    ASSERT_TRUE(queue.Push({}));
  }
  EXPECT_FALSE(queue.Push({}));
  EXPECT_EQ(queue.Take().size(), NotifyQueue::kMaxCount);
  EXPECT_TRUE(queue.Push({.name = "", .message = std::string(NotifyQueue::kMaxBytes, 'm')}));
  EXPECT_FALSE(queue.Push({.name = "n", .message = ""}));
  EXPECT_TRUE(queue.Push({}));
}

}  // namespace
}  // namespace mooncake::transfer
