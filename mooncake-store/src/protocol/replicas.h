// Where the bytes of objects lie, as replies carry it: a flat table of extents, cut into replicas,
// cut into objects, so that a batch of any size is a few vectors that are reused from call to call.
//
// Thread-safety: values.
// Ownership:     owns all it holds; spans lend until the table is next changed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mooncake::store {

// The master's small number of a mounted segment. A number may come back for another segment after
// an unmount; the incarnation tells the two apart.
using SegmentNumber = std::uint32_t;

// One contiguous range of one segment.
struct Extent {
  SegmentNumber segment = 0;
  std::uint64_t incarnation = 0;   // Of the mount that the range was given in.
  std::uint64_t offset_bytes = 0;  // From the segment's base address.
  std::uint64_t length_bytes = 0;  // Never zero.

  friend bool operator==(const Extent&, const Extent&) = default;
};

enum class ReplicaType : std::uint8_t { kMemory = 0, kDisk = 1, kLocalDisk = 2, kNofSsd = 3 };

// A run of extents in ReplicaTable::extents; in order, they hold the object's bytes.
struct Replica {
  std::uint32_t first_extent = 0;
  std::uint32_t extent_count = 0;
  ReplicaType type = ReplicaType::kMemory;

  friend bool operator==(const Replica&, const Replica&) = default;
};

// A run of replicas in ReplicaTable::replicas.
struct ReplicaRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend bool operator==(const ReplicaRange&, const ReplicaRange&) = default;
};

struct ReplicaTable {
  std::vector<Replica> replicas;
  std::vector<Extent> extents;

  [[nodiscard]] std::span<const Replica> Replicas(ReplicaRange range) const {
    return std::span(replicas).subspan(range.first, range.count);
  }
  [[nodiscard]] std::span<const Extent> Extents(const Replica& replica) const {
    return std::span(extents).subspan(replica.first_extent, replica.extent_count);
  }
  void Clear() {
    replicas.clear();
    extents.clear();
  }

  friend bool operator==(const ReplicaTable&, const ReplicaTable&) = default;
};

}  // namespace mooncake::store
