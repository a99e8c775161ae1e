#include "mooncake-store/src/client/leaving_segments.h"

namespace mooncake::store {

Result<void> LeavingSegments::Add(const Uuid& segment, Instant when) {
  const MutexLock lock(mutex_);
  if (stopped_) {
    return Fail(ErrorCode::kCancelled, "let a segment go later: the client is closing");
  }
  std::erase_if(leaving_, [&](const Leaving& one) { return one.segment == segment; });
  leaving_.push_back({.segment = segment, .when = when});
  changed_.NotifyAll();
  if (!running_) {
    // The old one, if there was any, is past its last look at the list.
    MC_TRY_ASSIGN(thread_, Thread::Start("mc-unmount", [this] { Run(); }));
    running_ = true;
  }
  return {};
}

void LeavingSegments::Run() {
  mutex_.lock();
  while (!stopped_ && !leaving_.empty()) {
    const auto next = std::ranges::min_element(leaving_, {}, &Leaving::when);
    const Instant now = SteadyClock::Get().Now();
    if (now < next->when) {
      changed_.WaitUntil(mutex_, next->when);
      continue;
    }
    const Leaving one = *next;
    leaving_.erase(next);
    mutex_.unlock();
    const bool gone = let_go_(one.segment);
    mutex_.lock();
    const bool again =
        std::ranges::find(leaving_, one.segment, &Leaving::segment) != leaving_.end();
    if (!gone && !again) {
      leaving_.push_back({.segment = one.segment, .when = SteadyClock::Get().Now() + pause_});
    }
  }
  running_ = false;
  mutex_.unlock();
}

void LeavingSegments::Stop() {
  Thread last;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
    last = std::move(thread_);
  }
}

}  // namespace mooncake::store
