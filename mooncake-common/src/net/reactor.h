// One thread that waits for many descriptors, and runs what nobody else drives: servers, armed
// lanes, timers, posted functions.
//
// After any activity it polls for Options::spin before it sleeps in the kernel, because waking a
// sleeping thread costs tens of microseconds; an idle reactor makes no wake-ups at all.
//
// Thread-safety: all methods may be called from any thread, also from within callbacks. Callbacks
//                run one at a time on the reactor's thread and must not block.
// Ownership:     descriptors stay the caller's: Unwatch before closing one.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake {

// Names one watch for ever: an id whose watch has ended is ignored by Modify and Unwatch.
enum class WatchId : std::uint64_t { kNone = 0 };
// The same for one timer.
enum class TimerId : std::uint64_t { kNone = 0 };

struct ReactorOptions {
  Duration spin = std::chrono::microseconds(50);  // Polling after the last activity.
  const char* thread_name = "mc-reactor";         // Up to 15 characters are shown.
};

class Reactor {
 public:
  using Options = ReactorOptions;
  using EventCallback = std::move_only_function<void(std::uint32_t events)>;
  using Function = std::move_only_function<void()>;

  explicit Reactor(Options options = {});
  // Stops. Functions that were posted and did not run are destroyed.
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  // Begins. Watches, timers and functions given before are kept until then.
  //
  // Errors: kExhausted or kIo when the kernel gives no epoll or eventfd; kBusy after Stop().
  [[nodiscard]] Result<void> Start();

  // Runs what was posted before, joins, and runs nothing afterwards: later posts, timers and
  // events are dropped. Twice is fine; not from within a callback.
  void Stop();

  // Calls `callback` with the ready EPOLL* bits of those asked for in `events`. Level-triggered
  // unless `events` says EPOLLET; with EPOLLONESHOT the watch is silent after one call until
  // Modify.
  //
  // Errors: kInvalidArgument for a descriptor that cannot be watched, kExhausted, kIo.
  [[nodiscard]] Result<WatchId> Watch(int fd, std::uint32_t events, EventCallback callback);

  // Replaces the events of a watch; re-arms one that is one-shot. One system call.
  void Modify(WatchId id, std::uint32_t events);

  // Ends a watch. After it returns the callback does not run and has been destroyed; called from
  // within that callback, it returns at once and the callback is destroyed when it ends. May wait
  // for a call in progress.
  void Unwatch(WatchId id);

  // Runs `function` soon; functions keep their order. After Stop() it is dropped.
  void Post(Function function);

  // Runs `function` once, not before `delay` has passed. Resolution: 1 ms.
  TimerId After(Duration delay, Function function);

  // True: the function will never run. False: it has run, or it is this timer's own function that
  // asks. Waits for a call in progress.
  bool CancelTimer(TimerId id);

  [[nodiscard]] bool InReactorThread() const;

  // How often the thread went to sleep in the kernel; for tests and metrics.
  [[nodiscard]] std::uint64_t sleeps() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mooncake
