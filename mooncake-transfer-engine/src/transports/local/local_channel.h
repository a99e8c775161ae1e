// The work in progress between this process and one peer on the same host.
//
// A short post is copied on the posting thread before Post() returns. A long one is queued and
// copied chunk by chunk by whoever drives: every waiting caller, and the helper after a Release().
// Chunks of one queue are copied by several threads at once; no lock is held around a copy.
//
// Thread-safety: all methods, any thread. Sinks are told without a lock held, so they may post,
//                drive and abort.
// Lifetime:      shared by its endpoint and the helper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mooncake-transfer-engine/src/transports/local/piece_mover.h"
#include "mooncake-transfer-engine/src/transports/slice_ledger.h"

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
  [[nodiscard]] bool HasUnclaimed() const { return ledger_.HasUnclaimed(); }
  [[nodiscard]] std::uint64_t MovedBytes() const { return ledger_.moved_bytes(); }
  // As in SliceLedger; waits for the chunks that are being copied.
  void Abort(const Error& why) {
    ledger_.Abort(why, [] {});
  }

 private:
  void CopyNow(std::span<Slice* const> slices);

  const LocalChannelOptions options_;
  PieceMover mover_;
  SliceLedger ledger_;
};

}  // namespace mooncake::transfer
