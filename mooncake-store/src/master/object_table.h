// The objects of one shard: found by key, by slot, and by the segments that they lie on. Storage
// only; what may happen to an object is the shard's business.
//
// Thread-safety: none; the shard's lock.
// Ownership:     owns the records; a reference to one lives until it is erased or loses replicas.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "mooncake-store/src/master/hash_index.h"
#include "mooncake-store/src/master/object.h"
#include "mooncake-store/src/master/record_heap.h"

namespace mooncake::store {

// A range for an object, in the order of its bytes, replica after replica.
struct PlacedExtent {
  SegmentNumber segment = 0;
  std::uint8_t replica = 0;
  SpaceRange range;

  friend bool operator==(const PlacedExtent&, const PlacedExtent&) = default;
};

// Appends the ranges of those of the object's replicas for which `which(replica)` holds.
template <typename Which>
void AppendExtents(const ObjectRecord& object, std::vector<PlacedExtent>& out, Which which) {
  ForEachExtent(object, [&](const ExtentRecord& extent, std::uint64_t length, bool) {
    if (which(extent.replica)) {
      out.push_back({.segment = extent.segment,
                     .replica = static_cast<std::uint8_t>(extent.replica),
                     .range = {extent.offset_bytes, length}});
    }
  });
}

class ObjectTable {
 public:
  // Slots of this table are `shard` modulo `shard_count`.
  ObjectTable(std::uint32_t shard, std::uint32_t shard_count);
  ~ObjectTable();
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;

  [[nodiscard]] ObjectRecord* Find(std::uint64_t hash, std::uint32_t tenant,
                                   std::string_view key) const;
  // Null when the slot is free.
  [[nodiscard]] ObjectRecord* At(Slot slot) const;

  // For a batch: Prefetch() all, then PrefetchPlace() all, then PrefetchRecord() all, then Find()
  // all; each needs what the one before has loaded.
  void Prefetch(std::uint64_t hash) const { index_.Prefetch(static_cast<std::uint32_t>(hash)); }
  void PrefetchPlace(std::uint64_t hash) const;
  void PrefetchRecord(std::uint64_t hash) const;

  // The slot that the next insertion is to use.
  [[nodiscard]] Slot NextSlot() const;

  // A record with the key and the extents and all else zero, on its segments' lists, not indexed.
  ObjectRecord& Insert(Slot slot, std::uint32_t tenant, std::string_view key,
                       std::span<const PlacedExtent> extents);
  void AddToIndex(ObjectRecord& object, std::uint64_t hash);
  void RemoveFromIndex(ObjectRecord& object, std::uint64_t hash);
  // Of a record that is not indexed.
  void Erase(ObjectRecord& object);
  // The same object without the replicas that have an extent on `segment`; at least one must be
  // left. Replica numbers close up.
  ObjectRecord& DropReplicasOn(ObjectRecord& object, SegmentNumber segment);

  // Some object with an extent there, else kNoSlot.
  [[nodiscard]] Slot FirstOn(SegmentNumber segment) const;

  // Visits objects in slot order, from the one at position `from` on, at most `count` positions.
  // Returns the position to go on from, 0 at the end.
  template <typename Visit>
  std::size_t ForEachFrom(std::size_t from, std::size_t count, Visit visit) const;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  static constexpr std::size_t kChunkSlots = 512;
  struct Chunk {
    std::array<ObjectRecord*, kChunkSlots> records{};
    std::array<std::uint64_t, kChunkSlots / 64> taken{};  // A bit a slot.
    std::uint32_t used = 0;
  };

  [[nodiscard]] std::size_t LocalOf(Slot slot) const { return slot / shard_count_; }
  [[nodiscard]] ObjectRecord** Place(Slot slot) const;
  ExtentRecord& ExtentOn(Slot slot, SegmentNumber segment);
  void Link(ObjectRecord& object);
  void Unlink(ObjectRecord& object);

  const std::uint32_t shard_;
  const std::uint32_t shard_count_;
  RecordHeap heap_;
  HashIndex index_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::size_t first_with_room_ = 0;  // No chunk before this one has a free slot.
  std::vector<Slot> first_on_;       // By segment.
  std::size_t size_ = 0;
};

template <typename Visit>
std::size_t ObjectTable::ForEachFrom(std::size_t from, std::size_t count, Visit visit) const {
  const std::size_t end = chunks_.size() * kChunkSlots;
  std::size_t at = from;
  for (; at < end && count > 0; ++at, --count) {
    const Chunk* chunk = chunks_[at / kChunkSlots].get();
    if (chunk == nullptr) {
      at = at / kChunkSlots * kChunkSlots + kChunkSlots - 1;
    } else if (ObjectRecord* object = chunk->records[at % kChunkSlots]) {
      visit(*object);
    }
  }
  return at < end ? at : 0;
}

}  // namespace mooncake::store
