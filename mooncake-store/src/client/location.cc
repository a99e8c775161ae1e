#include "mooncake-store/src/client/location.h"

#include <algorithm>

namespace mooncake::store {

bool StillHolds(const Location& a, const LocatedReplica& replica, const Location& b) {
  if (a.version != b.version || a.size_bytes != b.size_bytes) {
    return false;
  }
  const auto mine = a.Extents(replica);
  return std::ranges::any_of(b.replicas, [&](const LocatedReplica& other) {
    return std::ranges::equal(mine, b.Extents(other),
                              [](const LocatedExtent& x, const LocatedExtent& y) {
                                return x.segment->identity == y.segment->identity &&
                                       x.address == y.address && x.length_bytes == y.length_bytes;
                              });
  });
}

void CutPieces(std::span<const LocatedExtent> extents, const Fragment& fragment, std::uint32_t item,
               std::vector<TransferPiece>& pieces) {
  std::uint64_t extent_begin = 0;  // In the object.
  std::uint64_t offset = fragment.object_offset;
  std::byte* memory = fragment.memory;
  std::uint64_t left = fragment.length_bytes;
  for (const LocatedExtent& extent : extents) {
    if (left == 0) {
      return;
    }
    const std::uint64_t extent_end = extent_begin + extent.length_bytes;
    if (offset < extent_end) {
      const std::uint64_t inside = offset - extent_begin;
      const std::uint64_t length = std::min(left, extent.length_bytes - inside);
      pieces.push_back(TransferPiece{.segment = extent.segment.get(),
                                     .address = extent.address + inside,
                                     .local = memory,
                                     .length_bytes = length,
                                     .item = item});
      memory += length;
      offset += length;
      left -= length;
    }
    extent_begin = extent_end;
  }
}

std::string_view PeerOf(std::span<const LocatedExtent> extents) {
  return extents.empty() ? std::string_view("no segment")
                         : std::string_view(extents.front().segment->info.te_endpoint);
}

}  // namespace mooncake::store
