// A TCP connection over loopback whose other end a thread serves; for benchmarks.
//
// Thread-safety: none.
#pragma once

#include <span>
#include <stop_token>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {

class LoopbackPeer {
 public:
  // `serve(fd, stop_token)` runs in the thread until it is asked to stop.
  template <typename Serve>
  explicit LoopbackPeer(Serve serve) {
    const UniqueFd listener = SocketListen("127.0.0.1", 0).value();
    const auto address = ResolveAddress("127.0.0.1", LocalPort(listener.get()).value());
    client = SocketConnect(*address).value();
    while (!server_) {
      server_ = SocketAccept(listener.get(), nullptr).value();
    }
    thread_ =
        Thread::Start("peer", [this, serve] { serve(server_.get(), stop_.get_token()); }).value();
  }
  ~LoopbackPeer() { stop_.request_stop(); }
  LoopbackPeer(const LoopbackPeer&) = delete;
  LoopbackPeer& operator=(const LoopbackPeer&) = delete;

  UniqueFd client;

 private:
  std::stop_source stop_;
  UniqueFd server_;
  Thread thread_;  // Joins before the sockets close.
};

// Reads all of `bytes`, spinning. Now and then it lets others onto its core, or a busy machine
// would measure its scheduler's time slice. False once asked to stop.
inline bool SpinRead(int fd, std::span<std::byte> bytes, const std::stop_token& stop = {}) {
  SpinWait spin(kEndlessSpin);
  while (!bytes.empty()) {
    const IoOutcome read = SocketRead(fd, bytes);
    if (read.kind == IoOutcome::Kind::kMoved) {
      bytes = bytes.subspan(read.bytes);
      spin.Restart();
    } else if (stop.stop_requested()) {
      return false;
    } else {
      (void)spin.Turn();
    }
  }
  return true;
}

}  // namespace mooncake
