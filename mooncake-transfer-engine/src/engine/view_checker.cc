#include "mooncake-transfer-engine/src/engine/view_checker.h"

#include <algorithm>
#include <utility>

#include "mooncake-common/src/base/log.h"

namespace mooncake::transfer {

void ViewChecker::Check(Segment& segment, const std::shared_ptr<PeerView>& suspect, Instant now) {
  std::list<Job> over;  // Joined after the lock is given back.
  {
    const MutexLock lock(mutex_);
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      const auto job = it++;
      if (job->over) {
        over.splice(over.end(), jobs_, job);
      }
    }
    const auto is_this = [&segment](const Job& job) { return job.segment == &segment; };
    if (stopping_ || jobs_.size() >= kMostAtOnce || std::ranges::any_of(jobs_, is_this) ||
        !segments_.BeginCheck(segment, *suspect, now)) {
      return;
    }
    Job& job = jobs_.emplace_back(Job{.segment = &segment});
    auto thread =
        Thread::Start("mc-check", [this, &job, &segment, suspect] { Run(job, segment, *suspect); });
    if (thread) {
      job.thread = std::move(thread).value();
      return;
    }
    jobs_.pop_back();
    MC_LOG_WARNING("check segment {}: {}; whoever waits for other peers waits for this one too",
                   segment.name(), thread.error().ToString());
  }
  segments_.Check(segment, *suspect);
}

void ViewChecker::Run(Job& job, Segment& segment, PeerView& suspect) {
  segments_.Check(segment, suspect);
  {
    // Before anybody is told, who may want the next check of this segment.
    const MutexLock lock(mutex_);
    job.segment = nullptr;
  }
  checked_();
  const MutexLock lock(mutex_);
  job.over = true;
}

void ViewChecker::Stop() {
  std::list<Job> left;  // Joined after the lock is given back.
  const MutexLock lock(mutex_);
  stopping_ = true;
  left.swap(jobs_);
}

}  // namespace mooncake::transfer
