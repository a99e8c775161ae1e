// Answers handshakes: who I am, a notification taken, yes I live.
//
// Threads:       everything runs on the reactor; no call blocks it. A silent or slow peer costs a
//                connection until its timeout and delays nobody.
// Thread-safety: Start() and Stop() from the owner's thread, not from a handler; port() from any
//                after Start(). Handlers are called on the reactor's thread and must not block.
// Ownership:     the reactor must be running from Start() on and must outlive this object.
// Untrusted:     whatever peers send is bounded by the options.
// Format:        docs/formats/handshake.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/port_range.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-transfer-engine/src/metadata/handshake_codec.h"

namespace mooncake::transfer {

struct HandshakeHandlers {
  // The local descriptor as JSON, or kNoDescriptor.
  std::function<std::string()> describe;
  // The local segment's name, for probes that ask for it.
  std::function<std::string()> name;
  // Takes a notification; false = refused, the queue is full.
  std::function<bool(Notification)> notify;
  // Answers a request to connect queue pairs; by default as an engine that has none.
  std::function<std::string(std::string_view request)> connect = [](std::string_view) {
    return std::string(kConnectionReply);
  };
};

// The reply's frame; nullopt: close without an answer. This is all that the server knows of the
// protocol.
[[nodiscard]] std::optional<std::string> AnswerHandshake(const HandshakeMessage& request,
                                                         const HandshakeHandlers& handlers);

struct HandshakeServerOptions {
  std::string host;  // Empty = all addresses of both families.
  PortRange ports;
  std::size_t max_message_bytes = kDefaultMaxHandshakeBytes;
  // When either is full, the oldest connection makes room.
  std::size_t max_connections = 1024;
  std::size_t max_buffered_bytes = std::size_t{64} << 20;
  Duration idle_timeout = std::chrono::seconds(5);     // Without a byte moved.
  Duration total_timeout = std::chrono::seconds(300);  // For one connection in any case.
};

class HandshakeServer {
 public:
  HandshakeServer(Reactor& reactor, HandshakeServerOptions options, HandshakeHandlers handlers);
  ~HandshakeServer();  // Stops.
  HandshakeServer(const HandshakeServer&) = delete;
  HandshakeServer& operator=(const HandshakeServer&) = delete;

  // Takes a port and serves. At most once.
  //
  // Errors: those of ListenInRange, kExhausted.
  [[nodiscard]] Result<void> Start(Rng& rng);

  // Closes the port and every connection; no handler runs after it returns. May be called twice.
  void Stop();

  [[nodiscard]] std::uint16_t port() const;  // 0 before Start().

  // Open connections; for tests and metrics. Any thread.
  [[nodiscard]] std::size_t connections() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mooncake::transfer
