#include "mooncake-store/src/server/ticker.h"

#include <utility>

namespace mooncake::store {

Result<void> Ticker::Start() {
  MC_TRY_ASSIGN(thread_, Thread::Start("mc-ticker", [this] { Run(); }));
  return {};
}

void Ticker::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.Join();
}

void Ticker::Run() {
  Instant next_report = clock_.Now() + options_.report_period;
  while (true) {
    const Instant now = clock_.Now();
    const bool more = master_.Tick(now);
    if (options_.report && now >= next_report) {
      options_.report();
      next_report = now + options_.report_period;
    }
    const Instant next = now + (more ? options_.busy_pause : options_.period);
    const MutexLock lock(mutex_);
    while (!stopping_ && changed_.WaitUntil(mutex_, next)) {
    }
    if (stopping_) {
      return;
    }
  }
}

}  // namespace mooncake::store
