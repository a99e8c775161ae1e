// The segments this engine has opened: names to small numbers, and the current view of each peer.
//
// Thread-safety: all methods, from any thread. Find takes no lock.
// Blocking:      Open, Refresh and Check ask the directory; View does when there is no view yet. No
//                lock is held meanwhile; callers that come while a question is under way share
//                the next one, or its failure.
// Ownership:     segments live as long as the table. A view that was replaced lives until nobody
//                holds it and Purge ran, so that the last holder may be inside one of its calls.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/log_fold.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"
#include "mooncake-transfer-engine/src/engine/peer_view.h"
#include "mooncake-transfer-engine/src/engine/segment_directory.h"
#include "mooncake-transfer-engine/src/engine/stable_array.h"

namespace mooncake::transfer {

class Segment {
 public:
  Segment(SegmentId id, std::string name) : id_(id), name_(std::move(name)) {}
  [[nodiscard]] SegmentId id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // Of lines about batches that fail as a whole.
  [[nodiscard]] LogFold& failures() { return failures_; }

 private:
  friend class SegmentTable;

  const SegmentId id_;
  const std::string name_;
  LogFold failures_;
  mutable Mutex mutex_;
  CondVar fetched_;
  std::shared_ptr<PeerView> view_ MC_GUARDED_BY(mutex_);
  bool fetching_ MC_GUARDED_BY(mutex_) = false;
  // Questions begun, and the number of the last one answered.
  std::uint64_t asked_ MC_GUARDED_BY(mutex_) = 0;
  std::uint64_t answered_ MC_GUARDED_BY(mutex_) = 0;
  Result<void> last_fetch_ MC_GUARDED_BY(mutex_);
  Instant last_check_ MC_GUARDED_BY(mutex_){};
};

class SegmentTable {
 public:
  // A peer that just failed is not asked for its descriptor more often than this.
  static constexpr Duration kCheckInterval = std::chrono::milliseconds(100);

  SegmentTable(std::string own_name, std::shared_ptr<SegmentDirectory> directory,
               std::span<const std::unique_ptr<Transport>> transports);

  [[nodiscard]] Result<SegmentId> Open(std::string_view name);
  // nullptr for an id that was not given out.
  [[nodiscard]] Segment* Find(SegmentId id) const { return segments_.At(id); }
  [[nodiscard]] std::size_t size() const { return segments_.size(); }

  // The current view, made if there is none.
  [[nodiscard]] Result<std::shared_ptr<PeerView>> View(Segment& segment);
  // The current view or nullptr; asks nobody.
  [[nodiscard]] std::shared_ptr<PeerView> Peek(const Segment& segment) const;

  // Fetches the descriptor again; a changed one replaces the view. On an error the view stays.
  [[nodiscard]] Result<void> Refresh(Segment& segment);
  // Whether Check is to be called for a suspect view now. If it just was, or the view is not the
  // current one any more, clears the suspicion instead.
  [[nodiscard]] bool BeginCheck(Segment& segment, PeerView& suspect, Instant now);
  // Refresh for a suspect view. Clears the suspicion in any case.
  void Check(Segment& segment, PeerView& suspect);
  // The next use fetches and connects anew.
  void Drop(Segment& segment);

  // What segment 0 is from now on.
  void SetOwn(std::shared_ptr<const SegmentDescriptor> own);

  // Destroys replaced views that nobody holds. Not from inside a transport's callback.
  void Purge();
  // Lets go of all views; for the end of the engine.
  void Clear();

 private:
  [[nodiscard]] Result<void> Fetch(Segment& segment);
  [[nodiscard]] Result<std::shared_ptr<const SegmentDescriptor>> Ask(const Segment& segment);
  void Retire(std::shared_ptr<PeerView> view);

  const std::shared_ptr<SegmentDirectory> directory_;
  const std::span<const std::unique_ptr<Transport>> transports_;
  StableArray<Segment> segments_;
  Mutex mutex_;
  std::map<std::string, SegmentId, std::less<>> ids_ MC_GUARDED_BY(mutex_);
  std::shared_ptr<const SegmentDescriptor> own_ MC_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<PeerView>> retired_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
