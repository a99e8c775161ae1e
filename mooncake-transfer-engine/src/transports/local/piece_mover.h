// Moves pieces of slices between this process and one peer on the same host, the cheapest way that
// is safe for each piece.
//
//   peer's memory shared, local memory registered    memcpy
//   anything else                                    process_vm, up to 1023 pieces a call
//
// Memory that is not registered may not be mapped at all; only the kernel can find out without
// dying, so it is never touched by memcpy. A region stays pinned while it is copied from or to.
//
// Thread-safety: Move() from any thread at once; no lock is held around a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/transports/local/peer_process.h"
#include "mooncake-transfer-engine/src/transports/local/shared_views.h"
#include "mooncake-transfer-engine/src/transports/piece.h"

namespace mooncake::transfer {

class PieceMover {
 public:
  // `regions` is this process's own table and outlives the mover.
  PieceMover(PeerProcess peer, const SegmentDescriptor& descriptor, RegionTable& regions,
             bool use_shared_memory);

  // Returns what failed, in index order; all else is in place. Once the peer is found to be lost
  // (kUnavailable), all pieces not yet moved fail with that.
  [[nodiscard]] std::vector<PieceFailure> Move(std::span<const Piece> pieces);

 private:
  class Run;

  PeerProcess peer_;
  const bool is_self_;
  RegionTable& regions_;
  SharedViews views_;
};

}  // namespace mooncake::transfer
