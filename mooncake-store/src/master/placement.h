// Chooses segments for a new object and takes space there.
//
// Thread-safety: any thread; takes the segments' leaf locks only.
// Order of what is tried: preferred names; names near the writer, if asked for; then by strategy.
// One range is better than several; ranges of one segment better than of several. Replicas lie on
// segments of different names.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "mooncake-store/src/master/object_table.h"
#include "mooncake-store/src/master/options.h"
#include "mooncake-store/src/master/segments.h"

namespace mooncake::store {

// More ranges than this are not given to one replica: readers pay for each.
inline constexpr std::size_t kMaxExtentsPerReplica = 256;

struct PlaceRequest {
  std::uint64_t bytes = 0;
  std::uint32_t replicas = 1;
  AllocationStrategy strategy = AllocationStrategy::kRandom;
  std::span<const std::string_view> preferred;  // Names, best first; unknown ones are passed over.
  std::string_view near_host;                   // Empty: place is of no matter.
  std::uint64_t key_hash = 0;
  std::uint64_t random = 0;
  std::span<const std::uint8_t> usable;  // By segment number; 0 = not for this writer.
  Instant now;
};

// Takes space for replicas until `out` holds `replicas` of them; returns how many it holds. `out`
// may hold some already.
std::uint32_t Place(const SegmentView& view, const PlaceRequest& request,
                    std::vector<PlacedExtent>& out);

// How many replicas there could be at most: names with a segment that may be used.
[[nodiscard]] std::uint32_t UsableNames(const SegmentView& view, const PlaceRequest& request);

// The segments where room would help the next replica: preferred ones if there are any usable and
// `preferred_only`, else all.
[[nodiscard]] SegmentMask WhereRoomHelps(const SegmentView& view, const PlaceRequest& request,
                                         std::span<const PlacedExtent> placed, bool preferred_only);

}  // namespace mooncake::store
