// A batch of transfer tasks: cuts requests into slices within a window, posts them on the peer's
// paths, sends failed ones again, and knows when each task has ended.
//
// Thread-safety: all methods, from any thread; a lock a batch. The lock is not held while a
//                transport is called, so a transport may end slices inside Post.
// Lifetime:      batches are pooled and never destroyed before the engine, so a late look at one
//                that was recycled finds a live object; the id tells that it is another batch.
// Memory:        a task costs sizeof(Task); slices only exist within the window.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"
#include "mooncake-transfer-engine/src/engine/reason_book.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/engine/segment_table.h"
#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake::transfer {

// What all batches of an engine share. Constant but for what it points to.
struct BatchContext {
  SegmentTable* segments = nullptr;
  RegionTable* regions = nullptr;
  const Clock* clock = nullptr;
  Duration stall_limit{};
  Duration spin{};
  std::uint32_t attempt_budget = 1;
  std::uint32_t window_slices = 1;
  std::uint64_t max_slice_bytes = 0;  // The least of all transports'.
  RemoteCheck remote_check = RemoteCheck::kAuto;
  // Asks the caretaker to look after batches; empty = callers do it themselves.
  std::function<void()> nudge;
  // Sees to it that a suspect view becomes trusted again or is replaced, now or later; where it is
  // later, OnChecked is called then.
  std::function<void(Segment&, const std::shared_ptr<PeerView>&, Instant)> check;
};

class Batch final : public SliceSink {
 public:
  Batch(const BatchContext& context, std::uint32_t index) : context_(context), index_(index) {}
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // ---- For the pool ----

  // Starts afresh under a new id, whose low 16 bits are `index`.
  [[nodiscard]] BatchId Begin(std::size_t capacity) MC_EXCLUDES(mutex_);
  // kBusy while a task is open, or the caller has not been told of the end of each, or of a failed
  // one. A thread may still be on its way out of a transport on this batch's
  // behalf; it holds what it uses.
  [[nodiscard]] Result<void> End(BatchId id) MC_EXCLUDES(mutex_);

  // ---- For callers; each is kNotFound when `id` is not this batch's any more ----

  [[nodiscard]] Result<void> Append(BatchId id, std::span<const TransferRequest> requests,
                                    const Notification* notify, bool attended) MC_EXCLUDES(mutex_);
  [[nodiscard]] Result<TransferStatus> TaskStatus(BatchId id, std::size_t task) MC_EXCLUDES(mutex_);
  [[nodiscard]] Result<TransferStatus> Status(BatchId id) MC_EXCLUDES(mutex_);
  [[nodiscard]] Result<Error> TaskError(BatchId id, std::size_t task) MC_EXCLUDES(mutex_);
  [[nodiscard]] Result<void> Wait(BatchId id, Duration timeout) MC_EXCLUDES(mutex_);
  [[nodiscard]] Result<int> CompletionFd(BatchId id) MC_EXCLUDES(mutex_);
  [[nodiscard]] Result<void> OnCompletion(BatchId id, std::move_only_function<void()> callback)
      MC_EXCLUDES(mutex_);
  // Ends what is open as kCanceled, or kTimeout when `why` says so.
  [[nodiscard]] Result<void> Cancel(BatchId id, const Error& why) MC_EXCLUDES(mutex_);

  struct DueNotify {
    SegmentId segment;
    Notification notify;
  };
  // Notifies whose time has come (all tasks completed), once.
  [[nodiscard]] std::vector<DueNotify> TakeNotifies(BatchId id) MC_EXCLUDES(mutex_);

  // What a caretaker does for a batch that nobody polls. Returns whether tasks are open.
  bool LookAfter() MC_EXCLUDES(mutex_);
  // Posts what waits, when there may be room again.
  void Nudge() MC_EXCLUDES(mutex_);
  // Some view is suspect no more: what waited for it can go on.
  void OnChecked() MC_EXCLUDES(mutex_);
  [[nodiscard]] BatchId id() const { return id_.load(std::memory_order_acquire); }

  void OnDone(std::span<Slice* const> slices) noexcept override;
  void OnFailed(std::span<Slice* const> slices, const Error& why) noexcept override;

 private:
  struct EngineSlice : Slice {
    std::uint32_t task = 0;
    std::uint32_t reasons = 0;      // Chain of its failed attempts.
    std::uint32_t failed_on = 0;    // Bits of the view's paths.
    std::uint16_t use = 0;          // While posted.
    std::uint16_t attempts = 0;     // Failed so far.
    std::uint32_t done_before = 0;  // The target's count at its first failure.
    bool registered = false;        // Its local memory is.
    bool refused = false;           // The peer refused it once already.
    Instant posted{};               // When its time is taken.
    Instant retry{};                // While delayed.
  };

  struct Task {
    std::byte* local;
    std::uint64_t remote;
    std::uint64_t length_bytes;
    std::uint64_t done_bytes;
    std::uint32_t slices;   // Cut and not over.
    std::uint32_t reasons;  // Chain of the slice that ended it.
    std::uint16_t target;
    Opcode opcode;
    TransferState state;
    bool cut;         // Nothing is left to cut.
    bool lost;        // A slice is over without success; it only waits for the others.
    bool registered;  // All of its local memory is.
    bool told;        // A status call has said that it is terminal.
  };

  // First in, first out, linked through Slice::next.
  struct SliceList {
    Slice* head = nullptr;
    Slice* tail = nullptr;
    [[nodiscard]] bool empty() const { return head == nullptr; }
    void PushBack(Slice* slice);
    void PushFront(Slice* slice);
    Slice* PopFront();
  };

  // A peer that tasks of this batch go to.
  struct Target {
    Segment* segment = nullptr;
    std::shared_ptr<PeerView> view;
    SliceList ready;         // Cut, not posted.
    std::uint32_t full = 0;  // Bits of paths that took nothing more in this pump.
    bool moved = false;      // The view changed after tasks were checked against the older one.
    std::uint32_t done = 0;  // Slices moved; wraps around.
    // Why nothing that was submitted so far is tried any more, of the chains; 0 = it is.
    std::uint32_t given_up = 0;
  };

  // Slices of ours on one path. Holds the view, also when the target has a newer one by now.
  struct Use {
    std::shared_ptr<PeerView> view;
    Path* path = nullptr;
    std::uint32_t outstanding = 0;
    std::uint64_t seen_progress = 0;
    Instant still_since{};  // Zero = not watched yet.
  };

  // Holds the lock; runs the callback, if it has become due, after letting go of it.
  class MC_SCOPED_CAPABILITY Guard {
   public:
    explicit Guard(Batch& batch) MC_ACQUIRE(batch.mutex_) : batch_(batch) { batch.mutex_.lock(); }
    ~Guard() MC_RELEASE() MC_NO_THREAD_SAFETY_ANALYSIS;
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Batch& batch_;
  };

  [[nodiscard]] Result<void> CheckId(BatchId id) const MC_REQUIRES(mutex_);
  // Whether tasks may be appended; to be asked again after the lock was given up.
  [[nodiscard]] Result<void> CheckOpen(BatchId id) const MC_REQUIRES(mutex_);
  [[nodiscard]] Result<void> CheckAll(BatchId id, std::span<const TransferRequest> requests)
      MC_REQUIRES(mutex_);
  void AppendTasks(BatchId id, std::span<const TransferRequest> requests) MC_REQUIRES(mutex_);
  [[nodiscard]] Result<std::uint16_t> TargetOf(BatchId id, SegmentId segment) MC_REQUIRES(mutex_);
  [[nodiscard]] Result<void> CheckRequest(BatchId id, const TransferRequest& request,
                                          std::uint16_t target, AddressRange& remote,
                                          AddressRange& local) MC_REQUIRES(mutex_);

  void Pump() MC_REQUIRES(mutex_);
  void Cut() MC_REQUIRES(mutex_);
  [[nodiscard]] bool PostReady(std::uint16_t index) MC_REQUIRES(mutex_);
  [[nodiscard]] std::size_t GatherRun(Target& target, std::span<Slice*> run, Path*& path)
      MC_REQUIRES(mutex_);
  void WaitForRoom(Path& path) MC_REQUIRES(mutex_);
  [[nodiscard]] bool HasWork() const MC_REQUIRES(mutex_) {
    return ready_ != 0 || cursor_task_ < tasks_.size();
  }
  [[nodiscard]] std::uint16_t UseOf(const std::shared_ptr<PeerView>& view, Path& path)
      MC_REQUIRES(mutex_);

  EngineSlice* NewSlice() MC_REQUIRES(mutex_);
  void FreeSlice(EngineSlice* slice) MC_REQUIRES(mutex_);
  // The slice is over for good, without success; `chain` says why.
  void LoseSlice(EngineSlice* slice, std::uint32_t chain) MC_REQUIRES(mutex_);
  void MaybeFinish(std::uint32_t task) MC_REQUIRES(mutex_);
  // After a failed attempt: puts the slice among the delayed, or loses it.
  void Delay(EngineSlice& slice, const PeerView& view, const Error& why) MC_REQUIRES(mutex_);
  // Whether the target's new view still holds the slice's range; else the slice is lost.
  [[nodiscard]] bool StillOffered(const Target& target, EngineSlice& slice) MC_REQUIRES(mutex_);
  [[nodiscard]] bool DriveOnce() MC_REQUIRES(mutex_);
  void ReleaseAll() MC_REQUIRES(mutex_);
  void Housekeep(Instant now, bool may_fetch) MC_REQUIRES(mutex_);
  void AbortStalled(Instant now) MC_REQUIRES(mutex_);
  void RetryDue(Instant now, bool may_fetch) MC_REQUIRES(mutex_);
  void AdoptView(Target& target) MC_REQUIRES(mutex_);
  [[nodiscard]] Result<void> WaitUntilSettled(BatchId id, Duration timeout) MC_REQUIRES(mutex_);
  void Sleep(Instant now, std::optional<Instant> deadline) MC_REQUIRES(mutex_);
  void Poll() MC_REQUIRES(mutex_);
  [[nodiscard]] Error ErrorOf(std::uint32_t task) const MC_REQUIRES(mutex_);
  // A slice has spent its attempts while no other got through to its target: for those that wait
  // it would be the same, only later, window after window.
  void GiveUp(std::uint16_t target, std::uint32_t chain) MC_REQUIRES(mutex_);
  void LoseUnpostedOf(std::uint16_t target, std::uint32_t chain) MC_REQUIRES(mutex_);
  // Everything that no transport has: uncut, ready and delayed.
  void LoseUnposted(std::uint32_t chain) MC_REQUIRES(mutex_);
  // All tasks are terminal: tells who waits.
  void Settle() MC_REQUIRES(mutex_);
  // The caller knows that this task, or all that there are, have ended.
  void NoteTold(std::size_t task) MC_REQUIRES(mutex_);
  void NoteAllTold() MC_REQUIRES(mutex_);

  const BatchContext& context_;
  const std::uint32_t index_;
  std::atomic<BatchId> id_ = 0;  // 0 = in the pool.

  mutable Mutex mutex_;
  CondVar changed_;
  std::uint64_t generation_ MC_GUARDED_BY(mutex_) = 0;
  std::size_t capacity_ MC_GUARDED_BY(mutex_) = 0;
  std::vector<Task> tasks_ MC_GUARDED_BY(mutex_);
  std::size_t open_tasks_ MC_GUARDED_BY(mutex_) = 0;
  std::size_t bad_tasks_ MC_GUARDED_BY(mutex_) = 0;
  std::uint32_t first_bad_ MC_GUARDED_BY(mutex_) = 0;  // Only when bad_tasks_ is not zero.
  std::size_t untold_tasks_ MC_GUARDED_BY(mutex_) = 0;
  std::size_t all_told_ MC_GUARDED_BY(mutex_) = 0;  // Tasks below this one are told of.
  bool told_of_bad_ MC_GUARDED_BY(mutex_) = false;
  std::uint64_t done_bytes_ MC_GUARDED_BY(mutex_) = 0;
  // Where cutting goes on.
  std::size_t cursor_task_ MC_GUARDED_BY(mutex_) = 0;
  std::uint64_t cursor_offset_ MC_GUARDED_BY(mutex_) = 0;

  std::vector<std::unique_ptr<EngineSlice[]>> slice_chunks_ MC_GUARDED_BY(mutex_);
  SliceList free_slices_ MC_GUARDED_BY(mutex_);
  std::uint32_t live_slices_ MC_GUARDED_BY(mutex_) = 0;
  std::uint32_t ready_ MC_GUARDED_BY(mutex_) = 0;  // In the targets' lists.
  SliceList delayed_ MC_GUARDED_BY(mutex_);        // Failed; wait for their time.

  std::vector<std::unique_ptr<Target>> targets_ MC_GUARDED_BY(mutex_);
  std::size_t target_count_ MC_GUARDED_BY(mutex_) = 0;  // The rest of targets_ is kept for later.
  std::vector<Use> uses_ MC_GUARDED_BY(mutex_);
  ReasonBook reasons_ MC_GUARDED_BY(mutex_);
  std::vector<DueNotify> notifies_ MC_GUARDED_BY(mutex_);

  bool pumping_ MC_GUARDED_BY(mutex_) = false;
  bool again_ MC_GUARDED_BY(mutex_) = false;
  std::uint32_t waiters_ MC_GUARDED_BY(mutex_) = 0;  // Threads that drive: in Wait, or about to be.
  bool release_due_ MC_GUARDED_BY(mutex_) = false;   // Posted where nobody may be driving.
  std::uint32_t sleepers_ MC_GUARDED_BY(mutex_) = 0;
  std::uint64_t ends_ MC_GUARDED_BY(mutex_) = 0;  // Calls of OnDone, OnFailed, OnChecked.
  // What our own stall ends at this moment; once for each thread that ends it.
  std::vector<const Path*> aborting_ MC_GUARDED_BY(mutex_);
  std::uint32_t cancel_chain_ MC_GUARDED_BY(mutex_) = 0;  // Not 0: everything is being ended.
  int event_fd_ MC_GUARDED_BY(mutex_) = -1;
  std::move_only_function<void()> callback_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
