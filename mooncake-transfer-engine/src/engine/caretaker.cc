#include "mooncake-transfer-engine/src/engine/caretaker.h"

#include <utility>

#include "mooncake-common/src/base/log.h"

namespace mooncake::transfer {

void Caretaker::Nudge() {
  if (awake_.load(std::memory_order_acquire)) {
    return;
  }
  const MutexLock lock(mutex_);
  if (stopping_) {
    return;
  }
  awake_.store(true);
  if (!started_) {
    auto thread = Thread::Start("mc-caretaker", [this] { Run(); });
    if (!thread) {
      awake_.store(false);
      MC_LOG_WARNING("start the engine's caretaker: {}; stalls are only seen by who polls",
                     thread.error().ToString());
      return;
    }
    thread_ = std::move(thread).value();
    started_ = true;
  }
  wake_.NotifyOne();
}

void Caretaker::Stop() {
  Thread thread;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
    wake_.NotifyOne();
  }
  thread.Join();
}

void Caretaker::Run() {
  // Rounds with nothing open before it sleeps for good: about a second, so that steady traffic does
  // not wake it anew for each batch.
  constexpr int kIdleRounds = 50;
  int idle = 0;
  mutex_.lock();
  while (!stopping_) {
    if (idle >= kIdleRounds) {
      awake_.store(false);
      // Work that came while Nudge still saw this thread awake is found by one more round.
      mutex_.unlock();
      const bool open = round_();
      mutex_.lock();
      if (open) {
        awake_.store(true);
      }
      while (!stopping_ && !awake_.load()) {
        wake_.Wait(mutex_);
      }
      idle = 0;
      continue;
    }
    mutex_.unlock();
    idle = round_() ? 0 : idle + 1;
    mutex_.lock();
    if (!stopping_) {
      wake_.WaitUntil(mutex_, SteadyClock::Get().Now() + kRound);
    }
  }
  mutex_.unlock();
}

}  // namespace mooncake::transfer
