#include "mooncake-transfer-engine/src/transports/tcp/data_server.h"

#include <utility>
#include <vector>

#include "mooncake-common/src/base/log.h"
#include "mooncake-transfer-engine/src/transports/tcp/server_session.h"
#include "mooncake-transfer-engine/src/transports/tcp/socket_options.h"

namespace mooncake::transfer {
namespace {

// Vectored calls a connection may make before the others have their turn: some MiB.
constexpr int kCallsPerTurn = 8;

}  // namespace

class DataServer::Connection {
 public:
  Connection(DataServer& server, std::uint64_t id, UniqueFd fd)
      : server_(server), id_(id), fd_(std::move(fd)), session_(server.regions_, server.check_) {}

  [[nodiscard]] std::uint64_t id() const { return id_; }

  [[nodiscard]] Result<void> Start() {
    place_ = server_.by_use_.insert(server_.by_use_.end(), this);
    MC_TRY_ASSIGN(watch_,
                  server_.reactor_.Watch(fd_.get(), EPOLLIN, [this](std::uint32_t) { OnReady(); }));
    return {};
  }

  // On the reactor's thread, once, unless the server stops.
  void LeaveOrder() { server_.by_use_.erase(place_); }

  // After it returns nothing happens here any more.
  void Close() {
    server_.reactor_.Unwatch(watch_);
    fd_.Reset();
  }

 private:
  enum class Turn : std::uint8_t { kMoved, kNothing, kOver };

  void OnReady() {
    server_.by_use_.splice(server_.by_use_.end(), server_.by_use_, place_);
    for (int call = 0; call < kCallsPerTurn; ++call) {
      const Turn written = Write();
      if (written == Turn::kOver || session_.finished()) {
        server_.Remove(id_);
        return;
      }
      const Turn read = Read();
      if (read == Turn::kOver) {
        server_.Remove(id_);
        return;
      }
      if (written == Turn::kNothing && read == Turn::kNothing) {
        break;
      }
    }
    const std::uint32_t events =
        (session_.WantsInput() ? EPOLLIN : 0U) | (session_.HasOutput() ? EPOLLOUT : 0U);
    if (events != events_) {
      events_ = events;
      server_.reactor_.Modify(watch_, events);
    }
  }

  Turn Write() {
    if (!session_.HasOutput()) {
      return Turn::kNothing;
    }
    IovList list;
    if (const Result<void> filled = session_.FillOutput(list); !filled) {
      return Over(filled.error());
    }
    const IoOutcome outcome = SocketWrite(fd_.get(), list.entries());
    const bool moved = outcome.kind == IoOutcome::Kind::kMoved;
    const Result<void> advanced = session_.OnOutput(moved ? outcome.bytes : 0);
    if (!moved && outcome.kind != IoOutcome::Kind::kWouldBlock) {
      return Turn::kOver;  // The peer has left; it knows why.
    }
    if (!advanced) {
      return Over(advanced.error());
    }
    return moved ? Turn::kMoved : Turn::kNothing;
  }

  Turn Read() {
    if (!session_.WantsInput() || drained_) {
      drained_ = false;
      return Turn::kNothing;
    }
    IovList list;
    if (const Result<void> filled = session_.FillInput(list); !filled) {
      return Over(filled.error());
    }
    const IoOutcome outcome = SocketRead(fd_.get(), list.entries());
    const bool moved = outcome.kind == IoOutcome::Kind::kMoved;
    const Result<void> advanced = session_.OnInput(moved ? outcome.bytes : 0);
    if (!moved && outcome.kind != IoOutcome::Kind::kWouldBlock) {
      return Turn::kOver;
    }
    if (!advanced) {
      return Over(advanced.error());
    }
    // Fewer bytes than there was room for: the next call would find none, and epoll tells.
    drained_ = moved && outcome.bytes < list.bytes();
    return moved ? Turn::kMoved : Turn::kNothing;
  }

  Turn Over(const Error& why) {
    if (const auto times = server_.refused_.Admit(SteadyClock::Get().Now())) {
      MC_LOG_WARNING("data connection from {} is closed: {} ({} times)", PeerText(fd_.get()),
                     why.message, times);
    }
    return Turn::kOver;
  }

  DataServer& server_;
  const std::uint64_t id_;
  UniqueFd fd_;
  ServerSession session_;
  std::list<Connection*>::iterator place_;  // In by_use_.
  WatchId watch_ = WatchId::kNone;
  std::uint32_t events_ = EPOLLIN;
  bool drained_ = false;
};

Result<void> DataServer::Start(UniqueFd listener) {
  return acceptor_.Start(std::move(listener), [this](UniqueFd connection, const SocketAddress&) {
    Admit(std::move(connection));
  });
}

void DataServer::Stop() {
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  acceptor_.Stop();
  {
    const MutexLock lock(mutex_);
    connections.swap(connections_);
  }
  for (const auto& [id, connection] : connections) {
    connection->Close();
  }
}

void DataServer::Admit(UniqueFd fd) {
  SetTcpSocketOptions(fd.get());
  std::shared_ptr<Connection> connection;
  bool full = false;
  {
    const MutexLock lock(mutex_);
    if (stopped_) {
      return;
    }
    full = connections_.size() >= max_connections_;
    const std::uint64_t id = next_id_++;
    connection = std::make_shared<Connection>(*this, id, std::move(fd));
    connections_.emplace(id, connection);
  }
  if (full) {
    if (const auto times = crowded_out_.Admit(SteadyClock::Get().Now())) {
      MC_LOG_WARNING(
          "data port: {} connections are open; those that are idle for longest are closed for new "
          "ones ({} times)",
          max_connections_, times);
    }
    Remove(by_use_.front()->id());
  }
  // On the reactor's thread: it cannot become ready before this has returned.
  if (const Result<void> started = connection->Start(); !started) {
    MC_LOG_WARNING("serve a data connection: {}", started.error().ToString());
    Remove(connection->id());
  }
}

void DataServer::Remove(std::uint64_t id) {
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mutex_);
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
      return;  // Stop() has it.
    }
    connection = std::move(found->second);
    connections_.erase(found);
  }
  connection->LeaveOrder();
  connection->Close();
  // Destroyed once its callback, on whose stack this runs, has ended.
  reactor_.Post([connection = std::move(connection)] {});
}

}  // namespace mooncake::transfer
