#include "mooncake-common/src/net/rpc/session.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "mooncake-common/src/net/rpc/frame.h"
#include "mooncake-common/src/net/rpc/raw_peer.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kAsk = 1;
constexpr std::size_t kAnswerBytes = 2048;

// Two ends of a connection; what lies between them is as little as the kernel allows.
std::pair<UniqueFd, UniqueFd> NarrowPair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  const int least = 1;
  EXPECT_EQ(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Goal: a peer that reads again just as it is being paused is not forgotten: nothing wakes a
// session for a peer that it neither reads nor has anything to send to.
// Method: a peer that reads all the while what hardly fits between the two, so that there are
// thousands of pauses, of which many meet a read.
TEST(Session, GoesOnForAPeerThatReadsAsItIsPaused) {
  constexpr std::size_t kRequests = 20'000;
  ServerShared shared;
  shared.handlers.resize(kAsk + 1);
  shared.handlers[kAsk] = [](auto, ReplyWriter& reply, const PeerInfo&) {
    reply.Append(std::array<std::byte, kAnswerBytes>{});
  };
  shared.hello_timeout = kHangLimit;
  SessionOrder order;
  auto [ours, theirs] = NarrowPair();
  Reactor reactor;
  Session session(reactor, std::move(ours), PeerInfo{}, shared, order, [](Session&) {});
  ASSERT_TRUE(session.Start().has_value());
  ASSERT_TRUE(reactor.Start().has_value());

  std::vector<std::byte> requests = HelloFrame();
  for (std::uint64_t id = 1; id <= kRequests; ++id) {
    const auto request = FrameOf({.method = kAsk, .id = id}, {});
    requests.insert(requests.end(), request.begin(), request.end());
  }
  std::jthread sender([&requests, to = theirs.get()] {
    auto left = std::span<const std::byte>(requests);
    pollfd writable{.fd = to, .events = POLLOUT, .revents = 0};
    while (!left.empty() && poll(&writable, 1, kHangLimitMs) == 1) {
      left = left.subspan(SocketWrite(to, left).bytes);
    }
  });
  std::size_t read = 0;
  std::vector<std::byte> part(64 << 10);
  while (read < kRequests * FrameBytes(kAnswerBytes)) {
    pollfd readable{.fd = theirs.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&readable, 1, kHangLimitMs), 1) << "forgotten after " << read << " bytes";
    read += SocketRead(theirs.get(), part).bytes;
  }
  EXPECT_EQ(shared.requests, kRequests);
  EXPECT_GT(shared.pauses, 0U);
}

}  // namespace
}  // namespace mooncake::rpc
