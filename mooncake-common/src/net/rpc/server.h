// The RPC server: handlers by number, run on the thread of the connection that asked: to
// completion, or, where an answer takes long, in steps between which others are served.
//
//   RpcServer server({.host = "127.0.0.1"});
//   server.Register(kEcho, [](auto body, ReplyWriter& reply, auto&) { reply.Append(body); });
//   MC_TRY(server.Start());  // Then server.port().
//
// Thread-safety: Register before Start, from one thread; everything else from any thread, but Stop
//                not from a handler. With several threads, handlers run at the same time.
// Ownership:     owns its threads (reactors), sockets and buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/rpc/byte_buffer.h"

namespace mooncake::rpc {

struct PeerInfo {
  std::uint64_t connection = 0;  // Unique in this server's life.
  std::string address;           // "10.0.0.1:40312"
  std::string software;          // What its hello said.
  std::uint64_t features = 0;
};

class ReplyWriter;

// A piece of the work for an answer; true once it has answered, which ends it. Like a handler, it
// must not block, and one that throws has answered kInternal.
using RpcStep = std::move_only_function<bool(ReplyWriter& reply)>;

// Where a handler puts its answer; straight into the connection's buffer. An answer of no bytes is
// one, too.
class ReplyWriter {
 public:
  ReplyWriter(ByteBuffer& out, std::size_t body_begin) : out_(out), body_begin_(body_begin) {}

  void Append(std::span<const std::byte> bytes) { out_.Append(bytes); }
  // Answers with an error instead; drops what was appended.
  void Fail(const Error& error);
  // Called by a handler that has not answered: `step` will, on the same thread, called again and
  // again. Other calls, of this connection too, are served between; those that take long one after
  // another in the order in which they came. With kMaxLater of them under way a connection is not
  // read. The step is destroyed without a further call when the connection or the server ends.
  void Later(RpcStep step);

 private:
  friend class Session;
  ByteBuffer& out_;
  std::size_t body_begin_;
  bool failed_ = false;
  std::unique_ptr<RpcStep> later_;
};

inline constexpr std::size_t kMaxLater = 64;

// `body` starts at a multiple of 8 bytes in memory, and lives for the call. Must not block: all
// peers of the thread wait meanwhile. One that throws has answered kInternal.
using RpcHandler =
    std::function<void(std::span<const std::byte> body, ReplyWriter& reply, const PeerInfo& peer)>;

// Why a connection ended.
enum class RpcClose : std::uint8_t {
  kPeerClosed,
  kIoError,
  kMalformedFrame,  // Also too large ones.
  kHelloExpected,   // Something else came first.
  kHelloTimeout,    // Nothing came.
  kVersionMismatch,
  kWrongToken,
  kServerStopped,
  kMadeRoom,  // Too many connections, and it had been silent for longest.
  kCount,
};
[[nodiscard]] std::string_view RpcCloseName(RpcClose reason);

struct RpcServerStats {
  std::uint64_t accepted = 0;
  std::uint64_t open = 0;
  std::uint64_t requests = 0;
  std::uint64_t unknown_methods = 0;
  std::uint64_t thrown = 0;  // Requests whose handler threw; answered with kInternal.
  std::uint64_t pauses = 0;  // How often a peer was not read: it did not read, or see kMaxLater.
  std::array<std::uint64_t, static_cast<std::size_t>(RpcClose::kCount)> closed{};

  [[nodiscard]] std::uint64_t closed_for(RpcClose reason) const {
    return closed[static_cast<std::size_t>(reason)];
  }
};

class RpcServer {
 public:
  struct Options {
    std::string host;        // Empty: all addresses, both families.
    std::uint16_t port = 0;  // 0: the kernel chooses; see port().
    std::string token;       // Demanded of clients unless empty.
    std::string software = "mooncake";
    std::uint64_t features = 0;
    std::size_t threads = 1;
    // With more than this, shared evenly by the threads, a new one takes the place of the longest
    // silent: of one that has not said hello, or else of any.
    std::size_t max_connections = 16384;
    // A peer with more unread answers than this is not served until it reads.
    std::size_t max_unread_bytes = std::size_t{64} << 20;
    Duration hello_timeout = std::chrono::seconds(5);
    Duration drain_timeout = std::chrono::seconds(1);  // How long Stop() waits for slow readers.
    Duration spin = std::chrono::microseconds(50);     // Polling after the last activity.
  };

  explicit RpcServer(Options options);
  ~RpcServer();  // Stops.
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Method numbers begin at 1; each may be registered once.
  void Register(std::uint16_t method, RpcHandler handler);

  // Errors: those of SocketListen, kExhausted; kBusy when started before.
  [[nodiscard]] Result<void> Start();

  // Takes no more connections or requests, sends the answers there are, closes, joins. Twice is
  // fine.
  void Stop();

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] RpcServerStats stats() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mooncake::rpc
