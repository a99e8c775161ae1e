// The handshake side of an engine, as every real backend needs it: the port that peers ask, the
// client that asks them, and the notifications that came in.
//
// Thread-safety: Start() and Stop() from the owner's thread; the rest from any in between.
// Ownership:     the reactor runs from before Start() until after Stop().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/net/reactor.h"
#include "mooncake-transfer-engine/src/metadata/handshake_client.h"
#include "mooncake-transfer-engine/src/metadata/handshake_server.h"
#include "mooncake-transfer-engine/src/metadata/metadata_options.h"
#include "mooncake-transfer-engine/src/metadata/notify_queue.h"

namespace mooncake::transfer {

class PeerLink {
 public:
  PeerLink(Reactor& reactor, const MetadataOptions& options)
      : reactor_(reactor),
        options_(options),
        client_({.connect_timeout = options.handshake_connect_timeout}) {}

  // `describe` and `name` answer peers, on the reactor's thread. Errors: those of HandshakeServer.
  [[nodiscard]] Result<void> Start(Rng& rng, std::function<std::string()> describe,
                                   std::function<std::string()> name) {
    server_.emplace(reactor_,
                    HandshakeServerOptions{.ports = options_.handshake_ports,
                                           .max_message_bytes = options_.max_handshake_bytes},
                    HandshakeHandlers{.describe = std::move(describe),
                                      .name = std::move(name),
                                      .notify = [this](Notification notification) {
                                        return queue_.Push(std::move(notification));
                                      }});
    return server_->Start(rng);
  }

  void Stop() {
    if (server_) {
      server_->Stop();
    }
  }

  // Questions to peers end, with kCancelled; any thread.
  void Interrupt() { client_.Interrupt(); }

  [[nodiscard]] std::uint16_t port() const { return server_ ? server_->port() : 0; }
  [[nodiscard]] const HandshakeClient& client() const { return client_; }
  [[nodiscard]] std::vector<Notification> TakeNotifies() { return queue_.Take(); }

 private:
  Reactor& reactor_;
  const MetadataOptions options_;
  HandshakeClient client_;
  NotifyQueue queue_;
  std::optional<HandshakeServer> server_;
};

}  // namespace mooncake::transfer
