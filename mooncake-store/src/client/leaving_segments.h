// Segments that were unmounted with a grace period: each is let go when its time has come.
//
// Thread-safety: all methods, from any thread; `let_go` runs on a thread that is there only while
//                something is leaving. After Stop(), which may be called twice, nothing is let go.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/base/uuid.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/thread.h"

namespace mooncake::store {

class LeavingSegments {
 public:
  // `let_go` may block; false: it is to be tried again after `pause`.
  using LetGo = std::function<bool(const Uuid& segment)>;

  LeavingSegments(LetGo let_go, Duration pause) : let_go_(std::move(let_go)), pause_(pause) {}
  ~LeavingSegments() { Stop(); }
  LeavingSegments(const LeavingSegments&) = delete;
  LeavingSegments& operator=(const LeavingSegments&) = delete;

  // Lets the segment go at `when`; said again of one that is leaving, then and not before.
  //
  // Errors: kExhausted (no thread; nothing is let go before somebody else comes), kCancelled after
  // Stop().
  [[nodiscard]] Result<void> Add(const Uuid& segment, Instant when) MC_EXCLUDES(mutex_);
  // Waits for the one that is being let go.
  void Stop() MC_EXCLUDES(mutex_);

 private:
  struct Leaving {
    Uuid segment;
    Instant when;
  };

  void Run() MC_EXCLUDES(mutex_);

  const LetGo let_go_;
  const Duration pause_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Leaving> leaving_ MC_GUARDED_BY(mutex_);
  bool running_ MC_GUARDED_BY(mutex_) = false;  // The thread will look at the list again.
  bool stopped_ MC_GUARDED_BY(mutex_) = false;
  Thread thread_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::store
