#include "mooncake-common/src/net/socket.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cstddef>
#include <string>

#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

// Waits for readiness, as a reactor would.
void Await(int fd, short events) {
  pollfd wait{.fd = fd, .events = events, .revents = 0};
  ASSERT_EQ(poll(&wait, 1, kHangLimitMs), 1);
}

UniqueFd AcceptOne(int listener, SocketAddress* peer = nullptr) {
  Await(listener, POLLIN);
  auto fd = SocketAccept(listener, peer);
  EXPECT_TRUE(fd.has_value());
  return std::move(*fd);
}

class SocketOverHost : public testing::TestWithParam<const char*> {};

TEST_P(SocketOverHost, CarriesBytesBothWays) {
  const auto listener = SocketListen("", 0);
  ASSERT_TRUE(listener.has_value()) << listener.error().ToString();
  const auto address = ResolveAddress(GetParam(), LocalPort(listener->get()).value());
  ASSERT_TRUE(address.has_value());
  auto client = SocketConnect(*address);
  ASSERT_TRUE(client.has_value()) << client.error().ToString();
  SocketAddress peer;
  const UniqueFd server = AcceptOne(listener->get(), &peer);
  EXPECT_EQ(peer.ToString(), PeerText(server.get()));
  EXPECT_EQ(PeerText(client->get()), address->ToString());

  std::array<std::byte, 4> sent{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::array<std::byte, 8> got{};
  EXPECT_EQ(SocketRead(server.get(), got).kind, IoOutcome::Kind::kWouldBlock);
  const std::array<iovec, 2> parts{iovec{sent.data(), 1}, iovec{sent.data() + 1, 3}};
  EXPECT_EQ(SocketWrite(client->get(), parts).bytes, 4U);
  Await(server.get(), POLLIN);
  EXPECT_EQ(SocketRead(server.get(), got).bytes, 4U);
  EXPECT_EQ(got[3], std::byte{4});
  client->Reset();
  Await(server.get(), POLLIN);
  const IoOutcome end = SocketRead(server.get(), got);
  EXPECT_EQ(end.kind, IoOutcome::Kind::kClosed);
  EXPECT_EQ(SocketError("x:1", end).code, ErrorCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(BothFamilies, SocketOverHost,
                         testing::Values("127.0.0.1", "::1", "[::1]", "localhost"));

TEST(Socket, KeepsItsPortForItselfAlone) {
  const auto first = SocketListen("127.0.0.1", 0);
  ASSERT_TRUE(first.has_value());
  const std::uint16_t port = LocalPort(first->get()).value();
  const auto second = SocketListen("127.0.0.1", port);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kAlreadyExists);
  EXPECT_NE(second.error().message.find(std::to_string(port)), std::string::npos);
  EXPECT_FALSE(SocketListen("", port).has_value());
}

TEST(Socket, ReportsARefusalOnFirstUse) {
  const RefusingPort refusing;
  const SocketAddress address = refusing.address();
  const auto client = SocketConnect(address);
  ASSERT_TRUE(client.has_value()) << "a non-blocking connect reports later";
  Await(client->get(), POLLIN);
  std::array<std::byte, 1> byte{};
  const IoOutcome outcome = SocketRead(client->get(), byte);
  ASSERT_EQ(outcome.kind, IoOutcome::Kind::kFailed);
  const Error error = SocketError(address.ToString(), outcome);
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_NE(error.message.find("is the peer running?"), std::string::npos) << error.message;
}

TEST(Socket, ResolvesANameToAllItsAddresses) {
  const auto one = ResolveAddresses("127.0.0.1", 7).value();
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].ToString(), "127.0.0.1:7");
  const auto all = ResolveAddresses("localhost", 7).value();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].ToString(), ResolveAddress("localhost", 7).value().ToString());
}

TEST(Socket, ExplainsNamesThatDoNotResolve) {
  EXPECT_EQ(ResolveAddress("", 1).error().code, ErrorCode::kInvalidArgument);
  const auto address = ResolveAddress("no such host", 1);
  ASSERT_FALSE(address.has_value());
  EXPECT_EQ(address.error().code, ErrorCode::kDns);
  EXPECT_NE(address.error().message.find("no such host"), std::string::npos);
}

TEST(Socket, HasNothingToAcceptBeforeSomebodyConnects) {
  const auto listener = SocketListen("::1", 0);
  ASSERT_TRUE(listener.has_value());
  const auto none = SocketAccept(listener->get(), nullptr);
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(*none);
}

TEST(UniqueFd, MovesAndClosesOnce) {
  auto pair = SocketPair().value();
  const int raw = pair.first.get();
  UniqueFd moved = std::move(pair.first);
  EXPECT_EQ(moved.get(), raw);
  EXPECT_EQ(pair.first.get(), -1);  // NOLINT(bugprone-use-after-move): what is left is defined.
  moved.Reset();
  std::array<std::byte, 1> byte{};
  EXPECT_EQ(SocketRead(pair.second.get(), byte).kind, IoOutcome::Kind::kClosed);
}

}  // namespace
}  // namespace mooncake
