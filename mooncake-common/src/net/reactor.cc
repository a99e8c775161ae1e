#include "mooncake-common/src/net/reactor.h"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <limits>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/concurrency/slab.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {
namespace {

constexpr std::size_t kEventBatch = 64;
constexpr std::uint64_t kWakeKey = 0;  // No WatchId is 0.

std::string Reason(int error_number) { return std::system_category().message(error_number); }

Instant Now() { return SteadyClock::Get().Now(); }

// Whole milliseconds for epoll_wait, rounded up so that a timer is never early.
int TimeoutMs(Instant now, Instant deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace

class Reactor::Impl {
 public:
  explicit Impl(Options options)
      : options_(options),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (epoll_ && wake_) {
      epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeKey}};
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
        epoll_.Reset();
      }
    }
  }

  Result<void> Start() {
    if (!epoll_ || !wake_) {
      return Fail(ErrorCode::kExhausted,
                  "start a reactor: the kernel gives no epoll or eventfd; raise the limit of open "
                  "files (ulimit -n)");
    }
    const MutexLock join_lock(join_mutex_);
    {
      const MutexLock lock(mutex_);
      if (stopping_) {
        return Fail(ErrorCode::kBusy, "start a reactor that was stopped; make a new one");
      }
    }
    if (started_) {
      return {};
    }
    MC_TRY_ASSIGN(thread_, Thread::Start(options_.thread_name, [this] { Run(); }));
    started_ = true;
    return {};
  }

  void Stop() {
    // Held while joining, so that every caller returns after the thread has ended.
    const MutexLock join_lock(join_mutex_);
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    Wake();
    MC_CHECK(!InReactorThread());
    thread_.Join();
  }

  Result<WatchId> Watch(int fd, std::uint32_t events, EventCallback callback) {
    auto shared_callback = std::make_shared<EventCallback>(std::move(callback));
    const MutexLock lock(mutex_);
    const std::uint64_t id = watched_.Insert({.fd = fd, .callback = shared_callback});
    epoll_event event{.events = events, .data = {.u64 = id}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      const int reason = errno;
      (void)watched_.Take(id);
      return Fail(reason == ENOSPC || reason == ENOMEM ? ErrorCode::kExhausted
                                                       : ErrorCode::kInvalidArgument,
                  fmt::format("watch descriptor {}: {}", fd, Reason(reason)));
    }
    return static_cast<WatchId>(id);
  }

  void Modify(WatchId id, std::uint32_t events) {
    const MutexLock lock(mutex_);
    if (const Watched* watched = watched_.Find(static_cast<std::uint64_t>(id))) {
      epoll_event event{.events = events, .data = {.u64 = static_cast<std::uint64_t>(id)}};
      (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, watched->fd, &event);
    }
  }

  void Unwatch(WatchId id) {
    std::optional<Watched> ended;  // Destroyed without the lock.
    const MutexLock lock(mutex_);
    ended = watched_.Take(static_cast<std::uint64_t>(id));
    if (ended) {
      (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ended->fd, nullptr);
    }
    // Also if it ended before, perhaps by its own callback, which may still be in progress.
    WaitWhileRunning(static_cast<std::uint64_t>(id));
  }

  void Post(Function function) {
    Function dropped;  // Destroyed without the lock.
    {
      const MutexLock lock(mutex_);
      if (ended_) {
        dropped = std::move(function);
        return;
      }
      posted_.push_back(std::move(function));
    }
    Wake();
  }

  TimerId After(Duration delay, Function function) {
    const Instant when = Now() + delay;
    bool is_first = false;
    std::uint64_t id = 0;
    {
      const MutexLock lock(mutex_);
      id = ++last_timer_;
      timers_.emplace(TimerKey{when, id}, std::move(function));
      timer_times_.emplace(id, when);
      is_first = timers_.begin()->first.id == id;
      PublishNextTimer();
    }
    if (is_first) {
      Wake();
    }
    return static_cast<TimerId>(id);
  }

  bool CancelTimer(TimerId timer) {
    const auto id = static_cast<std::uint64_t>(timer);
    Function function;  // Destroyed without the lock.
    const MutexLock lock(mutex_);
    const auto found = timer_times_.find(id);
    if (found == timer_times_.end()) {
      WaitWhileRunning(id | kTimerBit);
      return false;
    }
    const auto entry = timers_.find(TimerKey{found->second, id});
    function = std::move(entry->second);
    timers_.erase(entry);
    timer_times_.erase(found);
    PublishNextTimer();
    return true;
  }

  bool InReactorThread() const {
    return running_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

 private:
  struct Watched {
    int fd;
    std::shared_ptr<EventCallback> callback;
  };
  struct TimerKey {
    Instant when;
    std::uint64_t id;
    auto operator<=>(const TimerKey&) const = default;
  };
  // Keys of running calls: a watch's id, or a timer's with this bit, which no WatchId has.
  static constexpr std::uint64_t kTimerBit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kNoCall = 0;
  static constexpr Instant::rep kNever = std::numeric_limits<Instant::rep>::max();

  // Waits until the call of watch or timer `key` has ended, unless it is this thread's own.
  void WaitWhileRunning(std::uint64_t key) MC_REQUIRES(mutex_) {
    if (InReactorThread()) {
      return;
    }
    while (key != kNoCall && running_key_ == key) {
      ++waiters_;
      call_ended_.Wait(mutex_);
      --waiters_;
    }
  }

  void SetRunning(std::uint64_t key) MC_REQUIRES(mutex_) {
    running_key_ = key;
    if (waiters_ > 0) {
      call_ended_.NotifyAll();
    }
  }

  void PublishNextTimer() MC_REQUIRES(mutex_) {
    next_timer_.store(
        timers_.empty() ? kNever : timers_.begin()->first.when.time_since_epoch().count(),
        std::memory_order_relaxed);
  }

  // Makes the thread look at its queues. Pairs with Run(): one of the two sees the other's store.
  void Wake() {
    work_.store(true, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) &&
        sleeping_.exchange(false, std::memory_order_seq_cst)) {
      const std::uint64_t one = 1;
      (void)!write(wake_.get(), &one, sizeof one);
    }
  }

  // For how long to poll after something happened.
  Instant AwakeUntil(Instant now) const { return SpinningPays(now) ? now + options_.spin : now; }

  void Run() {
    running_thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    Instant awake_until = AwakeUntil(Now());
    for (;;) {
      bool active = false;
      if (work_.exchange(false, std::memory_order_seq_cst)) {
        active = true;
        if (RunPosted()) {
          running_thread_.store({}, std::memory_order_relaxed);
          return;
        }
      }
      Instant now = Now();
      if (now.time_since_epoch().count() >= next_timer_.load(std::memory_order_relaxed)) {
        active |= RunTimers(now);
        now = Now();
      }
      if (active) {
        awake_until = AwakeUntil(now);
      }
      int timeout_ms = 0;
      if (now >= awake_until) {
        sleeping_.store(true, std::memory_order_seq_cst);
        if (work_.load(std::memory_order_seq_cst)) {
          sleeping_.store(false, std::memory_order_relaxed);
          continue;
        }
        const Instant::rep next = next_timer_.load(std::memory_order_relaxed);
        timeout_ms = next == kNever ? -1 : TimeoutMs(now, Instant(Duration(next)));
        sleeps_.fetch_add(1, std::memory_order_relaxed);
      }
      std::array<epoll_event, kEventBatch> events;
      const int count = epoll_wait(epoll_.get(), events.data(), kEventBatch, timeout_ms);
      if (timeout_ms != 0) {
        sleeping_.store(false, std::memory_order_relaxed);
      }
      if (count > 0) {
        Dispatch(std::span(events).first(static_cast<std::size_t>(count)));
        awake_until = AwakeUntil(Now());
      } else if (timeout_ms == 0) {
        // Whoever is to send what we poll for may need this processor.
        if (!YieldCore(now)) {
          awake_until = now;
        }
      }
    }
  }

  void Dispatch(std::span<const epoll_event> events) {
    for (const epoll_event& event : events) {
      if (event.data.u64 == kWakeKey) {
        std::uint64_t count = 0;
        (void)!read(wake_.get(), &count, sizeof count);
        continue;
      }
      std::shared_ptr<EventCallback> callback;
      {
        const MutexLock lock(mutex_);
        const Watched* watched = watched_.Find(event.data.u64);
        if (watched == nullptr) {
          continue;  // Ended by an earlier callback of this batch, or by another thread.
        }
        callback = watched->callback;
        SetRunning(event.data.u64);
      }
      (*callback)(event.events);
      callback = nullptr;  // Before Unwatch may return.
      const MutexLock lock(mutex_);
      SetRunning(kNoCall);
    }
  }

  // Returns whether the thread is to end.
  bool RunPosted() {
    bool last = false;
    {
      const MutexLock lock(mutex_);
      batch_.swap(posted_);
      last = stopping_;
      ended_ = last;  // At once: what these functions post would neither run nor be dropped.
    }
    for (Function& function : batch_) {
      function();
    }
    batch_.clear();
    return last;
  }

  bool RunTimers(Instant now) {
    bool any = false;
    for (;;) {
      Function function;
      {
        const MutexLock lock(mutex_);
        SetRunning(kNoCall);
        if (timers_.empty() || timers_.begin()->first.when > now) {
          PublishNextTimer();
          return any;
        }
        const auto first = timers_.begin();
        function = std::move(first->second);
        SetRunning(first->first.id | kTimerBit);
        timer_times_.erase(first->first.id);
        timers_.erase(first);
      }
      any = true;
      function();
    }
  }

  const Options options_;
  UniqueFd epoll_;
  const UniqueFd wake_;
  std::atomic<std::thread::id> running_thread_{};
  std::atomic<bool> work_{false};      // Something was posted, or the first timer changed.
  std::atomic<bool> sleeping_{false};  // The thread may be in the kernel without a time-out of 0.
  std::atomic<Instant::rep> next_timer_{kNever};
  std::atomic<std::uint64_t> sleeps_{0};
  std::vector<Function> batch_;  // The thread's own.

  Mutex mutex_;
  CondVar call_ended_;
  Slab<Watched> watched_ MC_GUARDED_BY(mutex_);  // By their WatchId.
  std::vector<Function> posted_ MC_GUARDED_BY(mutex_);
  std::map<TimerKey, Function> timers_ MC_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Instant> timer_times_ MC_GUARDED_BY(mutex_);
  std::uint64_t last_timer_ MC_GUARDED_BY(mutex_) = 0;
  std::uint64_t running_key_ MC_GUARDED_BY(mutex_) = kNoCall;  // The watch or timer being called.
  int waiters_ MC_GUARDED_BY(mutex_) = 0;
  bool stopping_ MC_GUARDED_BY(mutex_) = false;
  bool ended_ MC_GUARDED_BY(mutex_) = false;

  Mutex join_mutex_;
  bool started_ MC_GUARDED_BY(join_mutex_) = false;
  Thread thread_ MC_GUARDED_BY(join_mutex_);
};

Reactor::Reactor(Options options) : impl_(std::make_unique<Impl>(options)) {}
Reactor::~Reactor() { Stop(); }
Result<void> Reactor::Start() { return impl_->Start(); }
void Reactor::Stop() { impl_->Stop(); }
Result<WatchId> Reactor::Watch(int fd, std::uint32_t events, EventCallback callback) {
  return impl_->Watch(fd, events, std::move(callback));
}
void Reactor::Modify(WatchId id, std::uint32_t events) { impl_->Modify(id, events); }
void Reactor::Unwatch(WatchId id) { impl_->Unwatch(id); }
void Reactor::Post(Function function) { impl_->Post(std::move(function)); }
TimerId Reactor::After(Duration delay, Function function) {
  return impl_->After(delay, std::move(function));
}
bool Reactor::CancelTimer(TimerId id) { return impl_->CancelTimer(id); }
bool Reactor::InReactorThread() const { return impl_->InReactorThread(); }
std::uint64_t Reactor::sleeps() const { return impl_->sleeps(); }

}  // namespace mooncake
