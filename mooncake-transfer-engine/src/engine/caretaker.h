// The engine's own thread: looks after what nobody polls (stalls, resends, peers that restarted).
// It sleeps without a timeout while nothing is open, and is only made at the first Nudge.
//
// Thread-safety: Nudge and Stop from any thread. Nudge is a load and a branch while it is awake.
#pragma once

#include <atomic>
#include <functional>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/thread.h"

namespace mooncake::transfer {

class Caretaker {
 public:
  // How often open work is looked at. Short against a stall limit, long against a transfer.
  static constexpr Duration kRound = std::chrono::milliseconds(20);

  // `round` returns whether anything is still open; it blocks on nothing.
  explicit Caretaker(std::function<bool()> round) : round_(std::move(round)) {}
  ~Caretaker() { Stop(); }
  Caretaker(const Caretaker&) = delete;
  Caretaker& operator=(const Caretaker&) = delete;

  void Nudge();
  void Stop();  // Joins. No Nudge has an effect afterwards.

 private:
  void Run();

  const std::function<bool()> round_;
  std::atomic<bool> awake_ = false;
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ MC_GUARDED_BY(mutex_) = false;
  bool started_ MC_GUARDED_BY(mutex_) = false;
  Thread thread_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
