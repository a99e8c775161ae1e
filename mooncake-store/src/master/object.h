// The master's record of one object: a fixed head, then its extents, then its key, in one block.
//
// Thread-safety: none; the shard's lock.
// Memory:        56 bytes, 24 an extent, and the key: 122 for a 42-byte key in one piece.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/uuid.h"
#include "mooncake-store/src/master/eviction/policy.h"
#include "mooncake-store/src/master/space.h"

namespace mooncake::store {

// One range that an object occupies, and its place among the objects on that segment.
struct ExtentRecord {
  std::uint64_t offset_bytes = 0;
  std::uint32_t units = 0;  // Of 64 bytes; the last extent of a replica may not fill its last one.
  std::uint32_t segment : 24 = 0;
  std::uint32_t replica : 8 = 0;
  // Neighbours in the shard's list of objects on this segment, which an object enters with its
  // first extent there.
  Slot next = kNoSlot;
  Slot previous = kNoSlot;
};
static_assert(sizeof(ExtentRecord) == 24);

struct ObjectRecord {
  // Until the bytes are there nobody can lease the object; the field then holds the id of the call
  // that is writing it, by which a repeated request is known.
  union {
    std::int64_t lease_until_ns;
    std::uint64_t call_id;
  };
  std::uint64_t version;
  std::uint64_t size_bytes;
  Uuid client;  // Who wrote it.
  Slot slot;
  std::uint32_t tenant;
  std::uint16_t key_bytes;
  std::uint16_t extent_count;
  std::uint8_t replica_count;
  std::uint8_t data_type;
  std::uint8_t committed : 1;  // The bytes are there.
  std::uint8_t indexed : 1;    // Found by its key. An upsert's new version is not until it ends.
  std::uint8_t hard_pinned : 1;
  std::uint8_t soft_pinned : 1;
  std::uint8_t from_put : 1;    // Not by upsert.
  std::uint8_t has_rare : 1;    // The shard knows more about it (Rare).
  std::uint8_t lent_whole : 1;  // Some lease that lives was given as LeaseUse::kWhole.

  [[nodiscard]] std::span<ExtentRecord> extents() {
    return {reinterpret_cast<ExtentRecord*>(this + 1), extent_count};
  }
  [[nodiscard]] std::span<const ExtentRecord> extents() const {
    return {reinterpret_cast<const ExtentRecord*>(this + 1), extent_count};
  }
  [[nodiscard]] std::string_view key() const {
    return {reinterpret_cast<const char*>(this + 1) + extent_count * sizeof(ExtentRecord),
            key_bytes};
  }
  [[nodiscard]] std::size_t block_bytes() const {
    return sizeof(ObjectRecord) + extent_count * sizeof(ExtentRecord) + key_bytes;
  }
  // The live lease, if any; 0 while the bytes are not there.
  [[nodiscard]] std::int64_t LeaseUntilNs() const { return committed != 0 ? lease_until_ns : 0; }
};
static_assert(sizeof(ObjectRecord) == 56);

// What the object occupies.
[[nodiscard]] inline std::uint64_t OccupiedBytes(const ObjectRecord& object) {
  std::uint64_t units = 0;
  for (const ExtentRecord& extent : object.extents()) {
    units += extent.units;
  }
  return units * kSpaceUnitBytes;
}

// What an object takes besides its record: its places in the index, the slot tables and the
// eviction policy. For the memory limit; shard_bench measures it.
inline constexpr std::uint64_t kOverheadBytes = 80;

// Appends what it occupies of each segment; returns how many were appended.
std::uint32_t AppendPlacements(const ObjectRecord& object, std::vector<Placement>& out);

// How many bytes of the object each extent holds: whole units but for the end of the replica.
// Calls visit(extent, length_bytes, first_of_its_replica) for each.
template <typename Visit>
void ForEachExtent(const ObjectRecord& object, Visit visit) {
  std::uint64_t left = 0;
  int replica = -1;
  for (const ExtentRecord& extent : object.extents()) {
    const bool first = static_cast<int>(extent.replica) != replica;
    if (first) {
      replica = static_cast<int>(extent.replica);
      left = object.size_bytes;
    }
    const std::uint64_t whole = std::uint64_t{extent.units} * kSpaceUnitBytes;
    const std::uint64_t length = left < whole ? left : whole;
    left -= length;
    visit(extent, length, first);
  }
}

}  // namespace mooncake::store
