// A condition variable for mooncake::Mutex. For queues off the hot path; parking.h is for the rest.
#pragma once

#include <condition_variable>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake {

class CondVar {
 public:
  // The lock is given up while waiting. Returns at a notification, now and then without one: wait
  // in a loop that looks at the state.
  void Wait(Mutex& mutex) MC_REQUIRES(mutex) { condition_.wait(mutex); }

  // False once `deadline` (of SteadyClock) has passed.
  bool WaitUntil(Mutex& mutex, Instant deadline) MC_REQUIRES(mutex) {
    return condition_.wait_until(
               mutex, std::chrono::steady_clock::time_point(deadline.time_since_epoch())) ==
           std::cv_status::no_timeout;
  }

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace mooncake
