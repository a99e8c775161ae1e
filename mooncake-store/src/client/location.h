// Where one version of one object lies, with its segments resolved: what a lookup gives, what the
// descriptor cache keeps, and how transfers are cut from it.
//
// Thread-safety: immutable once shared.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "mooncake-store/src/client/operation.h"
#include "mooncake-store/src/client/segment_table.h"

namespace mooncake::store {

struct LocatedExtent {
  std::shared_ptr<const PeerSegment> segment;
  std::uint64_t address = 0;  // In the owner's address space.
  std::uint64_t length_bytes = 0;
};

// A run of Location::extents that hold the object's bytes in order.
struct LocatedReplica {
  std::uint32_t first_extent = 0;
  std::uint32_t extent_count = 0;
};

struct Location {
  std::uint64_t size_bytes = 0;
  std::uint64_t version = 0;
  bool from_put = false;
  std::vector<LocatedReplica> replicas;  // Readable from memory, in the master's order.
  std::vector<LocatedExtent> extents;

  [[nodiscard]] std::span<const LocatedExtent> Extents(const LocatedReplica& replica) const {
    return std::span(extents).subspan(replica.first_extent, replica.extent_count);
  }
};

// Whether both name the same bytes: same version, and `replica` of `a` is also a replica of `b`.
[[nodiscard]] bool StillHolds(const Location& a, const LocatedReplica& replica, const Location& b);

// A piece of the caller's memory, and the part of the object that belongs there.
struct Fragment {
  std::byte* memory = nullptr;
  std::uint64_t object_offset = 0;
  std::uint64_t length_bytes = 0;
};

// Appends the pieces that move `fragment` to or from `extents`, all marked with `item`. The
// fragment lies inside the object.
void CutPieces(std::span<const LocatedExtent> extents, const Fragment& fragment, std::uint32_t item,
               std::vector<TransferPiece>& pieces);

// The endpoint of the first segment, for error texts.
[[nodiscard]] std::string_view PeerOf(std::span<const LocatedExtent> extents);

}  // namespace mooncake::store
