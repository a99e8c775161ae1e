// For tests only: what goes over an RPC connection, byte by byte.
#pragma once

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "mooncake-common/src/net/rpc/frame.h"
#include "mooncake-common/src/net/rpc/hello.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::rpc {

inline std::vector<std::byte> FrameOf(const FrameHeader& header, std::span<const std::byte> body) {
  std::vector<std::byte> bytes(FrameBytes(body.size()));
  FrameHeader full = header;
  full.body_bytes = static_cast<std::uint32_t>(body.size());
  EncodeFrameHeader(full, std::span(bytes).first<kFrameHeaderBytes>());
  std::ranges::copy(body, bytes.begin() + kFrameHeaderBytes);
  return bytes;
}

inline std::vector<std::byte> HelloFrame(const Hello& hello = {}) {
  return FrameOf({.method = kHelloMethod}, EncodeHello(hello));
}

// A client made of bare bytes, which says what it is told to.
class RawPeer {
 public:
  explicit RawPeer(std::uint16_t port)
      : fd_(SocketConnect(ResolveAddress("127.0.0.1", port).value()).value()) {}

  void Send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const IoOutcome sent = SocketWrite(fd_.get(), bytes);
      if (sent.kind == IoOutcome::Kind::kFailed) {
        return;  // Closed on us: what the test is about.
      }
      bytes = bytes.subspan(sent.bytes);
      if (sent.kind == IoOutcome::Kind::kWouldBlock && !Await(POLLOUT)) {
        ADD_FAILURE() << "the server does not read";
        return;
      }
    }
  }
  // Until all that was sent lies where the server's next look finds it.
  [[nodiscard]] bool AwaitArrival() const {
    return WaitUntil([&] {
      int underway = 0;
      return ioctl(fd_.get(), SIOCOUTQ, &underway) == 0 && underway == 0;
    });
  }
  // The next frame's body, or nothing once the server has closed.
  std::optional<std::vector<std::byte>> Read() {
    for (;;) {
      const auto frame = DecodeFrame(got_);
      if (!frame) {
        ADD_FAILURE() << frame.error().ToString();
        return std::nullopt;
      }
      if (frame->bytes > 0) {
        std::vector<std::byte> body(frame->body.begin(), frame->body.end());
        last_id_ = frame->header.id;
        got_.erase(got_.begin(), got_.begin() + static_cast<std::ptrdiff_t>(frame->bytes));
        return body;
      }
      if (!Await(POLLIN)) {
        ADD_FAILURE() << "the server neither answers nor closes";
        return std::nullopt;
      }
      std::array<std::byte, 4096> part{};
      const IoOutcome read = SocketRead(fd_.get(), part);
      if (read.kind == IoOutcome::Kind::kClosed || read.kind == IoOutcome::Kind::kFailed) {
        return std::nullopt;
      }
      got_.insert(got_.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(read.bytes));
    }
  }
  // Of the frame that Read() returned last.
  [[nodiscard]] std::uint64_t last_id() const { return last_id_; }
  // Takes what is there, without waiting.
  std::size_t Drain() {
    std::array<std::byte, 64 * 1024> part{};
    return SocketRead(fd_.get(), part).bytes;
  }

 private:
  [[nodiscard]] bool Await(short events) const {
    pollfd wait{.fd = fd_.get(), .events = events, .revents = 0};
    return poll(&wait, 1, kHangLimitMs) == 1;
  }
  UniqueFd fd_;
  std::vector<std::byte> got_;
  std::uint64_t last_id_ = 0;
};

}  // namespace mooncake::rpc
