// Tells a Master that time passes: every 100 ms, and sooner while it says that there is more to do.
//
// Thread-safety: Start() and Stop() from the owner's thread.
// Ownership:     borrows master and clock; owns one thread, which sleeps between ticks.
#pragma once

#include <functional>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-store/src/master/master.h"

namespace mooncake::store {

class Ticker {
 public:
  struct Options {
    Duration period = std::chrono::milliseconds(100);
    // Between two ticks while there is more to do: requests come first.
    Duration busy_pause = std::chrono::milliseconds(1);
    Duration report_period = std::chrono::seconds(10);
    std::function<void()> report;  // Called on the ticker's thread; may be empty.
  };

  Ticker(Master& master, const Clock& clock, Options options)
      : master_(master), clock_(clock), options_(std::move(options)) {}
  ~Ticker() { Stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Errors: kExhausted if the system gives no thread. At most once.
  [[nodiscard]] Result<void> Start();
  // Twice is fine.
  void Stop() MC_EXCLUDES(mutex_);

 private:
  void Run() MC_EXCLUDES(mutex_);

  Master& master_;
  const Clock& clock_;
  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ MC_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace mooncake::store
