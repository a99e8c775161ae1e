// The slices an endpoint has taken and not yet ended: a bounded queue, who serves which part of it,
// and the order that Abort() promises.
//
// Thread-safety: all methods, any thread. Sinks are told without a lock held, by Report(), EndNow()
//                and Abort() only, so that a transport chooses where: a sink may post, drive and
//                abort.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/transports/slice_queue.h"

namespace mooncake::transfer {

class SliceLedger {
 public:
  struct Limits {
    SliceQueue::Limits queue;
    // Push() takes no more once this much is unclaimed.
    std::uint64_t max_unclaimed_bytes;
  };
  explicit SliceLedger(const Limits& limits);

  // Queues slices from the front of `slices` while there is room, none during an Abort(); returns
  // how many.
  [[nodiscard]] std::size_t Push(std::span<Slice* const> slices);

  // For a thread that moves `slices` at once, past the queue: false during an Abort(). After true,
  // EndNow() must follow; it tells the sinks. `failures` are by index in `slices`.
  [[nodiscard]] bool BeginNow();
  void EndNow(std::span<Slice* const> slices, std::span<const PieceFailure> failures);

  // As in SliceQueue. What ends waits for the next Report(). There is nothing to take during an
  // Abort(): what is given back then is ended by it, and nobody would end a claim taken then.
  void Take(Claim& claim);
  void Finish(const Claim& claim, std::span<const PieceFailure> failures);
  void Return(const Claim& claim, std::span<const PieceFailure> failures);
  // For whoever moves what is claimed; see Endpoint::MovedBytes().
  void CountMoved(std::uint64_t bytes) { moved_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t moved_bytes() const {
    return moved_bytes_.load(std::memory_order_relaxed);
  }
  // Ends all that is not claimed with `why`.
  void FailUnclaimed(const Error& why);

  // Tells the sinks of all that has ended. False when nothing has.
  bool Report();

  // Ends what is unclaimed with `why`, calls `stop`, which makes whoever holds a claim finish it or
  // give it back soon, and waits for that: when it returns, all that was taken has been told to its
  // sink. A sink may call it; then what that very thread is about to tell comes after.
  void Abort(const Error& why, const std::function<void()>& stop);

  // Whether Take() finds something.
  [[nodiscard]] bool HasUnclaimed() const { return has_unclaimed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t unclaimed_bytes() const;

 private:
  class ReportScope;

  [[nodiscard]] bool IsQuiet() const MC_REQUIRES(mutex_);
  // After each change: what others look at without the lock, and who waits for quiet.
  void Settle() MC_REQUIRES(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  CondVar changed_;
  SliceQueue queue_ MC_GUARDED_BY(mutex_);
  EndedSlices ended_ MC_GUARDED_BY(mutex_);
  std::atomic<bool> has_unclaimed_ = false;
  std::atomic<bool> has_ended_ = false;
  std::atomic<std::uint64_t> moved_bytes_ = 0;
  std::size_t moving_now_ MC_GUARDED_BY(mutex_) = 0;  // Between BeginNow() and EndNow().
  std::size_t reporting_ MC_GUARDED_BY(mutex_) = 0;   // Threads that are telling sinks.
  std::size_t aborting_ MC_GUARDED_BY(mutex_) = 0;    // Calls of Abort() under way.
  // Of `reporting_`, those that are inside an Abort() which a sink called.
  std::size_t reporting_and_aborting_ MC_GUARDED_BY(mutex_) = 0;
};

}  // namespace mooncake::transfer
