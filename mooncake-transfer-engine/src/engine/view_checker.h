// Looks again at peers whose transfers fail: asks for each one's descriptor on a short-lived thread
// of its own, so that a peer that does not answer holds up nobody but its own slices, which wait
// while their view is suspect.
//
// Thread-safety: all methods, from any thread. Check does not block.
// Lifetime:      the table outlives it. The threads end at Stop, which waits for the directory; who
//                stops interrupts that one first.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-transfer-engine/src/engine/segment_table.h"

namespace mooncake::transfer {

class ViewChecker {
 public:
  // Threads at once. When more peers than that went silent, the rest stays suspect until a later
  // look finds room.
  static constexpr std::size_t kMostAtOnce = 32;

  // `checked` is called on a checking thread when a view has ceased to be suspect.
  ViewChecker(SegmentTable& segments, std::function<void()> checked)
      : segments_(segments), checked_(std::move(checked)) {}
  ~ViewChecker() { Stop(); }
  ViewChecker(const ViewChecker&) = delete;
  ViewChecker& operator=(const ViewChecker&) = delete;

  // Begins SegmentTable::Check, unless the segment is being checked already.
  void Check(Segment& segment, const std::shared_ptr<PeerView>& suspect, Instant now)
      MC_EXCLUDES(mutex_);

  // Waits for the checks under way. No Check begins another one afterwards.
  void Stop() MC_EXCLUDES(mutex_);

 private:
  struct Job {
    const Segment* segment;  // Null once the answer is there.
    bool over = false;       // Nothing is left but to join the thread.
    Thread thread;           // Last: joined while the rest is alive.
  };

  void Run(Job& job, Segment& segment, PeerView& suspect) MC_EXCLUDES(mutex_);

  SegmentTable& segments_;
  const std::function<void()> checked_;
  Mutex mutex_;
  bool stopping_ MC_GUARDED_BY(mutex_) = false;
  std::list<Job> jobs_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
