// Takes the connections that come to a listening socket, on a reactor, and sits out a shortage of
// descriptors.
//
// When a connection cannot be taken, as when the process has no descriptors left, those that wait
// stay in the kernel's backlog. The acceptor does not look at them for 100 ms, because the listener
// is ready all the while and would be called again at once; then it tries anew, for ever. The log
// has one line in ten seconds about it, with the number of attempts.
//
// Thread-safety: Start() and Stop() by the owner, from any thread; the callback runs on the
//                reactor's, one call at a time.
// Ownership:     owns the listener; borrows the reactor, which must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "mooncake-common/src/base/log_fold.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {

class Acceptor {
 public:
  // May call Stop(), and must not destroy the acceptor.
  using OnConnection =
      std::move_only_function<void(UniqueFd connection, const SocketAddress& peer)>;

  // `name` stands in log lines: who accepts.
  Acceptor(Reactor& reactor, std::string name) : reactor_(reactor), name_(std::move(name)) {}
  ~Acceptor() { Stop(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Begins to take connections from `listener`, a non-blocking one (SocketListen).
  //
  // Errors: those of Reactor::Watch; kBusy after an earlier Start() or Stop().
  [[nodiscard]] Result<void> Start(UniqueFd listener, OnConnection on_connection)
      MC_EXCLUDES(mutex_);

  // Closes the listener: those that wait in its backlog are refused. After it returns the callback
  // does not run any more, unless it is the callback that asks. Twice is fine.
  void Stop() MC_EXCLUDES(mutex_);

  // How often it has looked away because a connection could not be taken.
  [[nodiscard]] std::uint64_t pauses() const { return pauses_.load(std::memory_order_relaxed); }

 private:
  void OnReady() MC_EXCLUDES(mutex_);
  Result<UniqueFd> AcceptOne(SocketAddress& peer) MC_EXCLUDES(mutex_);
  void Pause(const Error& why) MC_EXCLUDES(mutex_);
  void Resume() MC_EXCLUDES(mutex_);

  Reactor& reactor_;
  const std::string name_;
  LogFold fold_;
  std::atomic<std::uint64_t> pauses_{0};
  OnConnection on_connection_;  // The reactor's, once it is watched.
  Mutex mutex_;
  UniqueFd listener_ MC_GUARDED_BY(mutex_);
  WatchId watch_ MC_GUARDED_BY(mutex_) = WatchId::kNone;
  TimerId resume_timer_ MC_GUARDED_BY(mutex_) = TimerId::kNone;
  bool used_ MC_GUARDED_BY(mutex_) = false;
};

}  // namespace mooncake
