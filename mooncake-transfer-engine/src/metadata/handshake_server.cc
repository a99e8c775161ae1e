#include "mooncake-transfer-engine/src/metadata/handshake_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <list>
#include <span>
#include <string_view>
#include <utility>

#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/log_fold.h"
#include "mooncake-common/src/net/acceptor.h"

namespace mooncake::transfer {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} << 10;

enum class State : std::uint8_t {
  kReading,   // The request is not complete.
  kWriting,   // The reply is not sent whole.
  kDraining,  // All is said; the peer has to close first, so that it never loses the reply.
};

struct Connection {
  Connection(UniqueFd socket, std::size_t max_message_bytes)
      : fd(std::move(socket)), reader(max_message_bytes) {}

  [[nodiscard]] std::size_t HeldBytes() const { return reader.buffered_bytes() + reply.size(); }

  UniqueFd fd;
  WatchId watch = WatchId::kNone;
  TimerId timer = TimerId::kNone;
  State state = State::kReading;
  HandshakeReader reader;
  std::string reply;
  std::size_t sent_bytes = 0;
  Instant idle_deadline;
  Instant total_deadline;
};

}  // namespace

std::optional<std::string> AnswerHandshake(const HandshakeMessage& request,
                                           const HandshakeHandlers& handlers) {
  if (!IsHandshakeJson(request.json)) {
    return std::nullopt;
  }
  switch (request.type.value_or(HandshakeType::kConnection)) {
    case HandshakeType::kConnection:
      return EncodeHandshake(request.type, handlers.connect(request.json));
    case HandshakeType::kMetadata:
      return EncodeHandshake(request.type, handlers.describe());
    case HandshakeType::kNotify: {
      auto notification = DecodeNotification(request.json);
      if (!notification) {
        return std::nullopt;
      }
      // NOLINTNEXTLINE(performance-move-const-arg): a false alarm, it is moved into a parameter
      // taken by value.
      const bool accepted = handlers.notify(std::move(*notification));
      return EncodeHandshake(request.type, accepted ? kNotifyAccepted : kNotifyRefused);
    }
    case HandshakeType::kProbe:
      if (WantsName(request.json)) {
        return EncodeHandshake(request.type, EncodeNameReply(handlers.name()));
      }
      return EncodeHandshake(request.type, kProbeReply);
  }
  return std::nullopt;
}

// The list of connections belongs to the reactor's thread, or to Stop() once the reactor has ended.
class HandshakeServer::Impl {
 public:
  Impl(Reactor& reactor, HandshakeServerOptions options, HandshakeHandlers handlers)
      : reactor_(reactor), options_(std::move(options)), handlers_(std::move(handlers)) {}

  Result<void> Start(Rng& rng) {
    MC_TRY_ASSIGN(BoundListener listener, ListenInRange(options_.host, options_.ports, rng));
    port_.store(listener.port, std::memory_order_relaxed);
    MC_TRY(acceptor_.Start(
        std::move(listener.fd),
        [this](UniqueFd connection, const SocketAddress&) { Admit(std::move(connection)); }));
    started_ = true;
    return {};
  }

  void Stop() {
    if (!std::exchange(started_, false)) {
      return;
    }
    acceptor_.Stop();
    std::promise<void> promise;
    const std::future<void> closed = promise.get_future();
    reactor_.Post([this, promise = std::move(promise)]() mutable {
      CloseAll();
      promise.set_value();
    });
    closed.wait();  // Also ends when a stopped reactor drops the function: then nothing runs there.
    CloseAll();
  }

  std::uint16_t port() const { return port_.load(std::memory_order_relaxed); }
  std::size_t connections() const { return count_.load(std::memory_order_relaxed); }

 private:
  using Connections = std::list<Connection>;
  using It = Connections::iterator;

  static Instant Now() { return SteadyClock::Get().Now(); }

  void CloseAll() {
    while (!connections_.empty()) {
      Close(connections_.begin());
    }
  }

  void Admit(UniqueFd fd) {
    if (connections_.size() >= options_.max_connections) {
      Close(connections_.begin());
    }
    const It it =
        connections_.emplace(connections_.end(), std::move(fd), options_.max_message_bytes);
    count_.store(connections_.size(), std::memory_order_relaxed);
    auto watch = reactor_.Watch(it->fd.get(), EPOLLIN, [this, it](std::uint32_t) { OnReady(it); });
    if (!watch) {
      Refuse(it, watch.error().message);
      return;
    }
    it->watch = *watch;
    const Instant now = Now();
    it->idle_deadline = now + options_.idle_timeout;
    it->total_deadline = now + options_.total_timeout;
    ArmTimer(it, now);
  }

  // One timer a connection, which looks at the deadlines when it fires: moving it with every byte
  // would cost more than the bytes.
  void ArmTimer(It it, Instant now) {
    it->timer = reactor_.After(std::min(it->idle_deadline, it->total_deadline) - now, [this, it] {
      const Instant fired = Now();
      if (fired >= std::min(it->idle_deadline, it->total_deadline)) {
        Close(it);
      } else {
        ArmTimer(it, fired);
      }
    });
  }

  void Close(It it) {
    if (it->watch != WatchId::kNone) {
      reactor_.Unwatch(it->watch);
      reactor_.CancelTimer(it->timer);
    }
    held_bytes_ -= it->HeldBytes();
    connections_.erase(it);
    count_.store(connections_.size(), std::memory_order_relaxed);
  }

  // Whoever sends nonsense may send it again and again.
  void Refuse(It it, std::string_view why) {
    if (const auto times = refused_.Admit(Now())) {
      MC_LOG_WARNING("{}: {} ({} times)", PeerText(it->fd.get()), why, times);
    }
    Close(it);
  }

  void OnReady(It it) {
    if (it->state == State::kWriting) {
      Write(it);
    } else {
      Read(it);
    }
  }

  void Read(It it) {
    const IoOutcome outcome = SocketRead(it->fd.get(), std::span(buffer_));
    switch (outcome.kind) {
      case IoOutcome::Kind::kWouldBlock:
        return;
      case IoOutcome::Kind::kClosed:  // Also the good end, after the reply.
      case IoOutcome::Kind::kFailed:
        Close(it);
        return;
      case IoOutcome::Kind::kMoved:
        break;
    }
    if (it->state == State::kDraining) {
      return;
    }
    it->idle_deadline = Now() + options_.idle_timeout;
    const std::size_t held_before = it->HeldBytes();
    const auto complete = it->reader.Feed(
        std::string_view(reinterpret_cast<const char*>(buffer_.data()), outcome.bytes));
    held_bytes_ += it->HeldBytes() - held_before;
    if (!complete) {
      Refuse(it, complete.error().message);
    } else if (*complete) {
      Answer(it);
    } else {
      MakeRoom(it);
    }
  }

  // Keeps what all connections hold within its bound, at the expense of the oldest.
  void MakeRoom(It newest) {
    while (held_bytes_ > options_.max_buffered_bytes && connections_.begin() != newest) {
      Close(connections_.begin());
    }
    if (held_bytes_ > options_.max_buffered_bytes) {
      Close(newest);
    }
  }

  void Answer(It it) {
    held_bytes_ -= it->HeldBytes();
    auto reply = AnswerHandshake(it->reader.Take(), handlers_);
    if (!reply) {
      Refuse(it, "a handshake that is not JSON is closed without answer");
      return;
    }
    it->reply = std::move(*reply);
    held_bytes_ += it->HeldBytes();
    it->state = State::kWriting;
    Write(it);
  }

  void Write(It it) {
    const auto left = std::as_bytes(std::span(it->reply)).subspan(it->sent_bytes);
    const IoOutcome outcome = SocketWrite(it->fd.get(), left);
    if (outcome.kind == IoOutcome::Kind::kFailed) {
      Close(it);
      return;
    }
    if (outcome.kind == IoOutcome::Kind::kMoved) {
      it->idle_deadline = Now() + options_.idle_timeout;
      it->sent_bytes += outcome.bytes;
    }
    if (it->sent_bytes < it->reply.size()) {
      reactor_.Modify(it->watch, EPOLLOUT);
      MakeRoom(it);
      return;
    }
    held_bytes_ -= it->HeldBytes();
    it->reply = {};
    it->state = State::kDraining;
    (void)shutdown(it->fd.get(), SHUT_WR);  // Fails when the peer has gone, which is seen next.
    reactor_.Modify(it->watch, EPOLLIN);
  }

  Reactor& reactor_;
  const HandshakeServerOptions options_;
  const HandshakeHandlers handlers_;
  Acceptor acceptor_{reactor_, "handshake server"};
  bool started_ = false;  // The owner's.
  std::atomic<std::uint16_t> port_{0};
  std::atomic<std::size_t> count_{0};
  // The reactor's thread:
  Connections connections_;  // Oldest first.
  std::size_t held_bytes_ = 0;
  LogFold refused_;
  std::array<std::byte, kReadBytes> buffer_;
};

HandshakeServer::HandshakeServer(Reactor& reactor, HandshakeServerOptions options,
                                 HandshakeHandlers handlers)
    : impl_(std::make_unique<Impl>(reactor, std::move(options), std::move(handlers))) {}
HandshakeServer::~HandshakeServer() { Stop(); }
Result<void> HandshakeServer::Start(Rng& rng) { return impl_->Start(rng); }
void HandshakeServer::Stop() { impl_->Stop(); }
std::uint16_t HandshakeServer::port() const { return impl_->port(); }
std::size_t HandshakeServer::connections() const { return impl_->connections(); }

}  // namespace mooncake::transfer
