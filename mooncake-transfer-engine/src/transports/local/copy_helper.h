// One thread that goes on copying where callers stopped driving. It starts with the first work it
// is given, sleeps when there is none, and takes turns between channels, a chunk each.
//
// Thread-safety: all methods, any thread; Stop() not from within a sink.
#pragma once

#include <deque>
#include <memory>

#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-transfer-engine/src/transports/local/local_channel.h"

namespace mooncake::transfer {

class CopyHelper {
 public:
  CopyHelper() = default;
  ~CopyHelper() { Stop(); }
  CopyHelper(const CopyHelper&) = delete;
  CopyHelper& operator=(const CopyHelper&) = delete;

  // Drives `channel` until all of it is claimed; nothing more after Stop().
  //
  // Errors: kExhausted when the system gives no thread; nobody drives then.
  [[nodiscard]] Result<void> Help(std::shared_ptr<LocalChannel> channel);

  // Finishes the chunk at hand and joins. Twice is fine.
  void Stop();

 private:
  void Run();
  [[nodiscard]] bool IsWaiting(const std::shared_ptr<LocalChannel>& channel) const
      MC_REQUIRES(mutex_);

  Mutex mutex_;
  CondVar wake_;
  std::deque<std::shared_ptr<LocalChannel>> channels_ MC_GUARDED_BY(mutex_);  // Each at most once.
  bool stopped_ MC_GUARDED_BY(mutex_) = false;
  Thread thread_ MC_GUARDED_BY(mutex_);
  bool started_ MC_GUARDED_BY(mutex_) = false;
};

}  // namespace mooncake::transfer
