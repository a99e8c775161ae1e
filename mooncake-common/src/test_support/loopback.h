// Addresses of this host that only one test uses.
//
// A port that was free a moment ago may be anybody's by now: the kernel gives it to the next socket
// that asks for any. So a test does not look for a free port in order to bind it, or to find nobody
// there, later. It binds port 0 and keeps that, or, where a port must be given up and taken again,
// uses a host of its own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {

// One of the sixteen million addresses of the loopback network. Who binds 127.0.0.1, or leaves its
// address to the kernel, takes no port of this one.
inline std::string OwnLoopbackHost() {
  Rng rng = Rng::FromOs();
  return fmt::format("127.{}.{}.{}", rng.Between(1, 254), rng.Between(0, 255), rng.Between(1, 254));
}

// A port of 127.0.0.1 that refuses connections for as long as this lives: bound, and nobody
// listens.
class RefusingPort {
 public:
  RefusingPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress any = ResolveAddress("127.0.0.1", 0).value();
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&any.storage), any.length_bytes),
              0);
  }
  [[nodiscard]] std::uint16_t port() const { return LocalPort(fd_.get()).value(); }
  [[nodiscard]] SocketAddress address() const {
    return ResolveAddress("127.0.0.1", port()).value();
  }

 private:
  const UniqueFd fd_;
};

}  // namespace mooncake
