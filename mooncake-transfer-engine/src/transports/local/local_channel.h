// The work in progress between this process and one peer on the same host.
//
// A short post is copied on the posting thread before Post() returns. A long one is queued and
// copied chunk by chunk by whoever drives: every waiting caller, and the helper after a Release().
// Chunks of one queue are copied by several threads at once; the lock is held to choose one only.
//
// Thread-safety: all methods, any thread. Sinks are told without a lock held, so they may post,
//                drive and abort.
// Lifetime:      shared by its endpoint and the helper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/transports/local/copy_queue.h"
#include "mooncake-transfer-engine/src/transports/local/piece_mover.h"
#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake::transfer {

struct LocalChannelOptions {
  std::uint64_t inline_bytes;  // Posts up to this are copied at once.
  std::uint64_t chunk_bytes;   // What a thread copies before it looks up.
  bool use_shared_memory;
};

class LocalChannel {
 public:
  LocalChannel(PeerProcess peer, const SegmentDescriptor& descriptor, RegionTable& regions,
               const LocalChannelOptions& options);

  // Takes all (the queue is made of the slices themselves), or none while it is being aborted.
  [[nodiscard]] std::size_t Post(std::span<Slice* const> slices);
  // Copies one chunk. False when all is claimed.
  bool Drive();
  [[nodiscard]] bool HasUnclaimed();
  // Ends what is not being copied at this moment with `why`, and waits for the chunks that are:
  // when it returns, all that was taken has been told to its sink. A sink may call it; then what
  // that very thread is about to tell comes after.
  void Abort(const Error& why);

 private:
  class ReportScope;

  void CopyNow(std::span<Slice* const> slices);
  [[nodiscard]] bool IsQuiet() const MC_REQUIRES(mutex_);
  [[nodiscard]] static bool IsShort(std::span<Slice* const> slices, std::uint64_t limit_bytes);

  const LocalChannelOptions options_;
  PieceMover mover_;
  Mutex mutex_;
  CondVar idle_;
  CopyQueue queue_ MC_GUARDED_BY(mutex_);
  std::size_t copying_now_ MC_GUARDED_BY(mutex_) = 0;  // Short posts under way.
  std::size_t reporting_ MC_GUARDED_BY(mutex_) = 0;    // Threads that are telling sinks.
  std::size_t aborting_ MC_GUARDED_BY(mutex_) = 0;     // Calls of Abort() under way.
  // Of `reporting_`, those that are inside an Abort() which a sink called.
  std::size_t reporting_and_aborting_ MC_GUARDED_BY(mutex_) = 0;
};

}  // namespace mooncake::transfer
