#include "mooncake-common/src/net/rpc/server.h"

#include <fmt/core.h>

#include <atomic>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/acceptor.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/rpc/session.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake::rpc {

std::string_view RpcCloseName(RpcClose reason) {
  switch (reason) {
    case RpcClose::kPeerClosed:
      return "peer closed";
    case RpcClose::kIoError:
      return "connection lost";
    case RpcClose::kMalformedFrame:
      return "malformed frame";
    case RpcClose::kHelloExpected:
      return "no hello came first";
    case RpcClose::kHelloTimeout:
      return "no hello in time";
    case RpcClose::kVersionMismatch:
      return "no common version";
    case RpcClose::kWrongToken:
      return "wrong token";
    case RpcClose::kServerStopped:
      return "server stopped";
    case RpcClose::kMadeRoom:
      return "made room for another";
    case RpcClose::kCount:
      break;
  }
  return "unknown";
}

class RpcServer::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {
    shared_.ours = {
        .features = options_.features, .token = options_.token, .software = options_.software};
    shared_.max_unread_bytes = options_.max_unread_bytes;
    shared_.hello_timeout = options_.hello_timeout;
  }

  void Register(std::uint16_t method, RpcHandler handler) {
    MC_CHECK(method != kHelloMethod);
    if (shared_.handlers.size() <= method) {
      shared_.handlers.resize(std::size_t{method} + 1);
    }
    MC_CHECK(!shared_.handlers[method]);
    shared_.handlers[method] = std::move(handler);
  }

  Result<void> Start() {
    const MutexLock lock(mutex_);
    if (!loops_.empty() || stopped_) {
      return Fail(ErrorCode::kBusy, "start an RPC server twice; make a new one");
    }
    MC_TRY_ASSIGN(UniqueFd listener, SocketListen(options_.host, options_.port));
    MC_TRY_ASSIGN(port_, LocalPort(listener.get()));
    for (std::size_t i = 0; i < std::max<std::size_t>(options_.threads, 1); ++i) {
      auto loop = std::make_unique<Loop>(
          Reactor::Options{.spin = options_.spin, .thread_name = "mc-rpc-server"});
      MC_TRY(loop->reactor.Start());
      loops_.push_back(std::move(loop));
    }
    acceptor_.emplace(loops_[0]->reactor, "rpc");
    return acceptor_->Start(std::move(listener),
                            [this](UniqueFd connection, const SocketAddress& peer) {
                              HandOver(std::move(connection), peer);
                            });
  }

  void Stop() {
    // Held while waiting, so that every caller returns after the server has stopped.
    const MutexLock lock(mutex_);
    if (std::exchange(stopped_, true) || loops_.empty()) {
      return;
    }
    acceptor_.reset();
    const Instant deadline = SteadyClock::Get().Now() + options_.drain_timeout;
    for (const auto& loop : loops_) {
      loop->reactor.Post([&loop = *loop] {
        loop.draining = true;
        for (const auto& [id, session] : loop.sessions) {
          session->Drain();
        }
        loop.EraseClosed();
      });
    }
    for (const auto& loop : loops_) {
      (void)loop->empty.Wait(deadline, Duration::zero());
      loop->reactor.Post([&loop = *loop] { loop.sessions.clear(); });
      loop->reactor.Stop();
    }
  }

  std::uint16_t port() const { return port_.load(); }

  RpcServerStats stats() const {
    RpcServerStats stats{.accepted = shared_.accepted.load(),
                         .open = shared_.open.load(),
                         .requests = shared_.requests.load(),
                         .unknown_methods = shared_.unknown_methods.load(),
                         .thrown = shared_.thrown.load(),
                         .pauses = shared_.pauses.load()};
    for (std::size_t i = 0; i < stats.closed.size(); ++i) {
      stats.closed[i] = shared_.closed[i].load();
    }
    return stats;
  }

 private:
  // A thread and its connections; all but the reactor belongs to that thread.
  struct Loop {
    explicit Loop(Reactor::Options options) : reactor(options) {}
    void EraseClosed() {
      for (const std::uint64_t id : std::exchange(closed, {})) {
        sessions.erase(id);
      }
      if (draining && sessions.empty()) {
        empty.Notify();
      }
    }
    SessionOrder order;  // Outlives the sessions, which leave it when they close.
    std::unordered_map<std::uint64_t, std::unique_ptr<Session>> sessions;
    std::vector<std::uint64_t> closed;  // To be erased once no callback of theirs is running.
    bool draining = false;
    Event empty;
    Reactor reactor;  // The last member: stops before the others go.
  };

  // On the first reactor's thread.
  void HandOver(UniqueFd fd, const SocketAddress& address) {
    PeerInfo peer{.connection = ++last_connection_, .address = address.ToString()};
    Loop& loop = *loops_[peer.connection % loops_.size()];
    loop.reactor.Post([this, &loop, fd = std::move(fd), peer = std::move(peer)]() mutable {
      Serve(loop, std::move(fd), std::move(peer));
    });
  }

  void Serve(Loop& loop, UniqueFd fd, PeerInfo peer) {
    if (loop.draining) {
      return;
    }
    const std::size_t share = std::max<std::size_t>(
        std::max<std::size_t>(options_.max_connections, 1) / loops_.size(), 1);
    while (loop.order.size() >= share) {
      loop.order.LongestSilent().Close(RpcClose::kMadeRoom);
    }
    const std::uint64_t id = peer.connection;
    auto session = std::make_unique<Session>(loop.reactor, std::move(fd), std::move(peer), shared_,
                                             loop.order, [&loop](Session& closed) {
                                               loop.closed.push_back(closed.peer().connection);
                                               if (loop.closed.size() == 1) {
                                                 loop.reactor.Post([&loop] { loop.EraseClosed(); });
                                               }
                                             });
    if (const auto started = session->Start(); !started) {
      MC_LOG_WARNING("rpc: {}", started.error().ToString());
      return;
    }
    loop.sessions.emplace(id, std::move(session));
  }

  const Options options_;
  ServerShared shared_;
  std::atomic<std::uint16_t> port_{0};
  std::uint64_t last_connection_ = 0;  // The first reactor's.
  Mutex mutex_;                        // Start and Stop.
  bool stopped_ MC_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::optional<Acceptor> acceptor_ MC_GUARDED_BY(mutex_);  // On the first of them.
};

RpcServer::RpcServer(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
RpcServer::~RpcServer() { Stop(); }
void RpcServer::Register(std::uint16_t method, RpcHandler handler) {
  impl_->Register(method, std::move(handler));
}
Result<void> RpcServer::Start() { return impl_->Start(); }
void RpcServer::Stop() { impl_->Stop(); }
std::uint16_t RpcServer::port() const { return impl_->port(); }
RpcServerStats RpcServer::stats() const { return impl_->stats(); }

}  // namespace mooncake::rpc
