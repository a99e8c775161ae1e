// Asks one peer one thing over its handshake port.
//
// Blocking, with deadlines: for set-up paths, never on a reactor or a submitting thread.
// Thread-safety: any thread; each call has its own connection.
// Format:        docs/formats/handshake.md
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/resolve.h"
#include "mooncake-transfer-engine/src/metadata/descriptor_codec.h"
#include "mooncake-transfer-engine/src/metadata/handshake_codec.h"

namespace mooncake::transfer {

struct HandshakeClientOptions {
  // MC_HANDSHAKE_CONNECT_TIMEOUT. From a name to a connection.
  Duration connect_timeout = std::chrono::seconds(5);
  // Silence while a reply is awaited. Long, because an old peer serves one client after another and
  // a silent one holds it up for 5 s.
  Duration answer_timeout = std::chrono::seconds(60);
  Duration probe_timeout = std::chrono::seconds(5);  // Instead of answer_timeout.
  std::size_t max_reply_bytes = kMaxDescriptorBytes;
  NameLookup lookup = ResolveAddresses;
};

class HandshakeClient {
 public:
  explicit HandshakeClient(HandshakeClientOptions options = {}) : options_(std::move(options)) {}

  // Errors of all calls: kDns; kUnavailable: nobody listens there, or the peer closed without an
  // answer; kTimeout: connected, but silent, or the name server is; kMalformed: the answer is none;
  // kCancelled: interrupted. The message names the peer.

  // The peer's descriptor. `own` is ours; the peer ignores its content.
  //
  // Errors also: kNotFound when the peer keeps its descriptor in a central store.
  [[nodiscard]] Result<SegmentDescriptor> FetchDescriptor(const std::string& host,
                                                          std::uint16_t port,
                                                          SegmentDescriptor own) const;

  // Errors also: kExhausted when the peer's queue is full, kInvalidArgument when not UTF-8.
  [[nodiscard]] Result<void> SendNotify(const std::string& host, std::uint16_t port,
                                        const Notification& notification) const;

  [[nodiscard]] Result<void> Probe(const std::string& host, std::uint16_t port) const;

  // Probes, and asks which segment answers; empty when the peer does not tell.
  [[nodiscard]] Result<std::string> AskName(const std::string& host, std::uint16_t port) const;

  // One request, one reply; the body of the reply.
  [[nodiscard]] Result<std::string> Call(const std::string& host, std::uint16_t port,
                                         HandshakeType type, std::string_view json) const;

  // Calls that wait for their peer end soon, and all later ones at once.
  void Interrupt() { interrupted_ = true; }

 private:
  class Exchange;

  const HandshakeClientOptions options_;
  std::atomic<bool> interrupted_ = false;
};

}  // namespace mooncake::transfer
