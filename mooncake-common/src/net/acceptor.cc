#include "mooncake-common/src/net/acceptor.h"

#include <fmt/core.h>

#include <utility>

#include "mooncake-common/src/base/log.h"

namespace mooncake {
namespace {

constexpr int kAcceptsAtOnce = 64;  // Then what else the reactor serves has its turn.
constexpr Duration kPause = std::chrono::milliseconds(100);  // For some descriptors to be closed.

}  // namespace

Result<void> Acceptor::Start(UniqueFd listener, OnConnection on_connection) {
  // Held until the watch is known, so that a connection that comes at once waits for it.
  const MutexLock lock(mutex_);
  if (std::exchange(used_, true)) {
    return Fail(ErrorCode::kBusy, fmt::format("start accepting for {} again", name_));
  }
  on_connection_ = std::move(on_connection);
  MC_TRY_ASSIGN(watch_,
                reactor_.Watch(listener.get(), EPOLLIN, [this](std::uint32_t) { OnReady(); }));
  listener_ = std::move(listener);
  return {};
}

void Acceptor::Stop() {
  UniqueFd listener;
  WatchId watch = WatchId::kNone;
  {
    const MutexLock lock(mutex_);
    used_ = true;
    listener = std::move(listener_);
    watch = watch_;
  }
  reactor_.Unwatch(watch);  // From here on no pause begins.
  TimerId timer = TimerId::kNone;
  {
    const MutexLock lock(mutex_);
    timer = resume_timer_;
  }
  reactor_.CancelTimer(timer);
}

void Acceptor::OnReady() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    SocketAddress peer;
    Result<UniqueFd> connection = AcceptOne(peer);
    if (!connection) {
      Pause(connection.error());
      return;
    }
    if (!*connection) {
      return;
    }
    on_connection_(*std::move(connection), peer);
  }
}

Result<UniqueFd> Acceptor::AcceptOne(SocketAddress& peer) {
  const MutexLock lock(mutex_);
  return listener_ ? SocketAccept(listener_.get(), &peer) : UniqueFd();  // Without: stopped.
}

void Acceptor::Pause(const Error& why) {
  pauses_.fetch_add(1, std::memory_order_relaxed);
  if (const auto times = fold_.Admit(SteadyClock::Get().Now())) {
    MC_LOG_WARNING("{}: {}; connections wait ({} times)", name_, why.ToString(), times);
  }
  const MutexLock lock(mutex_);
  reactor_.Modify(watch_, 0);
  resume_timer_ = reactor_.After(kPause, [this] { Resume(); });
}

void Acceptor::Resume() {
  const MutexLock lock(mutex_);
  reactor_.Modify(watch_, EPOLLIN);
}

}  // namespace mooncake
