#include "mooncake-transfer-engine/src/metadata/handshake_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake::transfer {
namespace {

// Older peers refuse a request beyond 1 MiB, and none reads more of it than its name.
constexpr std::size_t kMaxRequestBytes = std::size_t{512} << 10;

// However steadily the bytes of a reply trickle in.
constexpr Duration kMaxReceive = std::chrono::seconds(300);

Instant Now() { return SteadyClock::Get().Now(); }

}  // namespace

// One call.
class HandshakeClient::Exchange {
 public:
  explicit Exchange(const HandshakeClient& client) : client_(client) {}

  // Tries every address of a name: "localhost" may be ::1 first, where an old peer does not listen.
  Result<void> Connect(const std::string& host, std::uint16_t port) {
    const Instant deadline = Now() + client_.options_.connect_timeout;
    MC_TRY_ASSIGN(const Addresses addresses,
                  ResolveAll(host, port, deadline, client_.options_.lookup));
    std::optional<Error> first;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const Instant now = Now();
      const auto share = (deadline - now) / static_cast<int>(addresses.size() - i);
      auto connected = Connect(addresses[i], now + share);
      if (connected) {
        return {};
      }
      if (!first) {
        first = std::move(connected).error();
      }
    }
    Error error = first.value_or(Error{ErrorCode::kDns, "it has no address"});
    error.message = fmt::format("connect: {}", error.message);
    if (IsLoopbackHost(host)) {
      error.message += fmt::format(
          "; {} is always this host: a peer elsewhere must register under an address that "
          "can be reached from here",
          host);
    }
    return std::unexpected(std::move(error));
  }

  Result<void> Send(std::string_view bytes, Duration silence) {
    while (!bytes.empty()) {
      const IoOutcome outcome = SocketWrite(fd_.get(), std::as_bytes(std::span(bytes)));
      if (outcome.kind == IoOutcome::Kind::kFailed) {
        return std::unexpected(SocketError("send the request", outcome));
      }
      bytes.remove_prefix(outcome.bytes);
      if (outcome.kind == IoOutcome::Kind::kWouldBlock) {
        MC_TRY_ASSIGN(const bool ready, WaitFor(POLLOUT, Now() + silence));
        if (!ready) {
          return Fail(ErrorCode::kTimeout, "send the request: the peer does not read");
        }
      }
    }
    return {};
  }

  Result<HandshakeMessage> Receive(Duration silence) {
    const Instant end = Now() + kMaxReceive;
    HandshakeReader reader(client_.options_.max_reply_bytes);
    std::array<std::byte, std::size_t{16} << 10> buffer;
    for (;;) {
      const IoOutcome outcome = SocketRead(fd_.get(), std::span(buffer));
      switch (outcome.kind) {
        case IoOutcome::Kind::kWouldBlock: {
          MC_TRY_ASSIGN(const bool ready, WaitFor(POLLIN, std::min(Now() + silence, end)));
          if (!ready) {
            return Fail(ErrorCode::kTimeout, "read the reply: the peer is silent");
          }
          break;
        }
        case IoOutcome::Kind::kClosed:
          return Fail(ErrorCode::kUnavailable,
                      "read the reply: the peer closed without one; it refused the request or is "
                      "shutting down");
        case IoOutcome::Kind::kFailed:
          return std::unexpected(SocketError("read the reply", outcome));
        case IoOutcome::Kind::kMoved: {
          MC_TRY_ASSIGN(const bool complete,
                        reader.Feed(std::string_view(reinterpret_cast<const char*>(buffer.data()),
                                                     outcome.bytes)));
          if (complete) {
            return reader.Take();
          }
          if (Now() >= end) {
            return Fail(ErrorCode::kTimeout, "read the reply: it comes too slowly");
          }
          break;
        }
      }
    }
  }

 private:
  // False: the deadline passed first.
  Result<bool> WaitFor(short events, Instant deadline) {
    // How long a call goes on that is interrupted: an engine's end waits for it.
    constexpr std::int64_t kLookMs = 50;
    for (;;) {
      if (client_.interrupted_) {
        return Fail(ErrorCode::kCancelled, "the engine is stopping");
      }
      const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(deadline - Now()).count();
      if (left_ms <= 0) {
        return false;
      }
      pollfd entry{.fd = fd_.get(), .events = events, .revents = 0};
      const int ready = poll(&entry, 1, static_cast<int>(std::min(left_ms, kLookMs)));
      if (ready > 0 || (ready < 0 && errno != EINTR)) {
        return true;  // The next read or write says what is wrong.
      }
    }
  }

  Result<void> Connect(const SocketAddress& address, Instant deadline) {
    MC_TRY_ASSIGN(fd_, SocketConnect(address));
    MC_TRY_ASSIGN(const bool ready, WaitFor(POLLOUT, deadline));
    if (!ready) {
      return Fail(ErrorCode::kUnavailable,
                  address.ToString() + ": no answer in time; is the host up and the way open?");
    }
    int reason = 0;
    socklen_t length = sizeof reason;
    if (getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &reason, &length) != 0) {
      reason = errno;
    }
    if (reason != 0) {
      return std::unexpected(SocketError(
          address.ToString(), {.kind = IoOutcome::Kind::kFailed, .error_number = reason}));
    }
    return {};
  }

  const HandshakeClient& client_;
  UniqueFd fd_;
};

Result<std::string> HandshakeClient::Call(const std::string& host, std::uint16_t port,
                                          HandshakeType type, std::string_view json) const {
  const auto exchange = [&]() -> Result<std::string> {
    const Duration silence =
        type == HandshakeType::kProbe ? options_.probe_timeout : options_.answer_timeout;
    Exchange peer(*this);
    MC_TRY(peer.Connect(host, port));
    MC_TRY(peer.Send(EncodeHandshake(type, json), silence));
    MC_TRY_ASSIGN(HandshakeMessage reply, peer.Receive(silence));
    if (reply.type != type) {
      return Fail(ErrorCode::kMalformed, "the reply has another type; is this a handshake port?");
    }
    return std::move(reply.json);
  };
  auto reply = exchange();
  if (!reply) {
    return Fail(reply.error().code, fmt::format("ask {} for {}: {}", FormatHostPort(host, port),
                                                HandshakeTypeName(type), reply.error().message));
  }
  return reply;
}

Result<SegmentDescriptor> HandshakeClient::FetchDescriptor(const std::string& host,
                                                           std::uint16_t port,
                                                           SegmentDescriptor own) const {
  std::string request = EncodeDescriptor(own);
  if (request.size() > kMaxRequestBytes) {
    own.buffers.clear();
    request = EncodeDescriptor(own);
  }
  MC_TRY_ASSIGN(const std::string reply, Call(host, port, HandshakeType::kMetadata, request));
  if (reply.starts_with(kNoDescriptor)) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} keeps its descriptor in a metadata server: use the same metadata "
                            "server and the segment's name instead of host and port",
                            FormatHostPort(host, port)));
  }
  auto descriptor = DecodeDescriptor(reply, options_.max_reply_bytes);
  if (!descriptor) {
    return Fail(descriptor.error().code,
                fmt::format("{}: {}", FormatHostPort(host, port), descriptor.error().message));
  }
  return descriptor;
}

Result<void> HandshakeClient::SendNotify(const std::string& host, std::uint16_t port,
                                         const Notification& notification) const {
  MC_TRY_ASSIGN(const std::string request, EncodeNotification(notification));
  MC_TRY_ASSIGN(const std::string reply, Call(host, port, HandshakeType::kNotify, request));
  MC_TRY_ASSIGN(const Notification answer, DecodeNotification(reply));
  if (answer.message.empty()) {
    return Fail(ErrorCode::kExhausted,
                fmt::format("notify {}: refused; its application does not take its notifications",
                            FormatHostPort(host, port)));
  }
  return {};
}

Result<void> HandshakeClient::Probe(const std::string& host, std::uint16_t port) const {
  MC_TRY_ASSIGN(const std::string reply, Call(host, port, HandshakeType::kProbe, kProbeRequest));
  if (!IsHandshakeJson(reply)) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("probe {}: the reply is not JSON", FormatHostPort(host, port)));
  }
  return {};
}

Result<std::string> HandshakeClient::AskName(const std::string& host, std::uint16_t port) const {
  MC_TRY_ASSIGN(const std::string reply, Call(host, port, HandshakeType::kProbe, kNameRequest));
  return DecodeNameReply(reply);
}

}  // namespace mooncake::transfer
