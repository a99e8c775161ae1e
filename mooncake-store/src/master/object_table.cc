#include "mooncake-store/src/master/object_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

ObjectTable::ObjectTable(std::uint32_t shard, std::uint32_t shard_count)
    : shard_(shard), shard_count_(shard_count) {}

ObjectTable::~ObjectTable() {
  for (const auto& chunk : chunks_) {
    if (chunk) {
      for (ObjectRecord* object : chunk->records) {
        if (object != nullptr) {
          heap_.Free(object, object->block_bytes());
        }
      }
    }
  }
}

ObjectRecord** ObjectTable::Place(Slot slot) const {
  const std::size_t local = LocalOf(slot);
  if (local / kChunkSlots >= chunks_.size() || !chunks_[local / kChunkSlots]) {
    return nullptr;
  }
  return &chunks_[local / kChunkSlots]->records[local % kChunkSlots];
}

ObjectRecord* ObjectTable::At(Slot slot) const {
  ObjectRecord** place = Place(slot);
  return place == nullptr ? nullptr : *place;
}

ObjectRecord* ObjectTable::Find(std::uint64_t hash, std::uint32_t tenant,
                                std::string_view key) const {
  ObjectRecord* found = nullptr;
  const Slot slot = index_.Find(static_cast<std::uint32_t>(hash), [&](Slot candidate) {
    found = *Place(candidate);
    return found->tenant == tenant && found->key() == key;
  });
  return slot == HashIndex::kNone ? nullptr : found;
}

void ObjectTable::PrefetchPlace(std::uint64_t hash) const {
  const Slot slot = index_.Peek(static_cast<std::uint32_t>(hash));
  if (slot != HashIndex::kNone) {
    __builtin_prefetch(static_cast<const void*>(Place(slot)));
  }
}

void ObjectTable::PrefetchRecord(std::uint64_t hash) const {
  const Slot slot = index_.Peek(static_cast<std::uint32_t>(hash));
  if (slot != HashIndex::kNone) {
    const char* record = reinterpret_cast<const char*>(*Place(slot));
    __builtin_prefetch(record);
    __builtin_prefetch(record + 64);
  }
}

Slot ObjectTable::NextSlot() const {
  std::size_t chunk = first_with_room_;
  while (chunk < chunks_.size() && chunks_[chunk] && chunks_[chunk]->used == kChunkSlots) {
    ++chunk;
  }
  std::size_t local = chunk * kChunkSlots;
  if (chunk < chunks_.size() && chunks_[chunk]) {
    std::size_t word = 0;
    while (~chunks_[chunk]->taken[word] == 0) {
      ++word;
    }
    local += word * 64 + static_cast<std::size_t>(std::countr_one(chunks_[chunk]->taken[word]));
  }
  return static_cast<Slot>(local) * shard_count_ + shard_;
}

ObjectRecord& ObjectTable::Insert(Slot slot, std::uint32_t tenant, std::string_view key,
                                  std::span<const PlacedExtent> extents) {
  const std::size_t local = LocalOf(slot);
  const std::size_t at = local / kChunkSlots;
  if (at >= chunks_.size()) {
    chunks_.resize(at + 1);
  }
  if (!chunks_[at]) {
    chunks_[at] = std::make_unique<Chunk>();
  }
  Chunk& chunk = *chunks_[at];
  MC_CHECK(slot % shard_count_ == shard_ && chunk.records[local % kChunkSlots] == nullptr);
  const std::size_t block_bytes =
      sizeof(ObjectRecord) + extents.size() * sizeof(ExtentRecord) + key.size();
  auto* object = new (heap_.Allocate(block_bytes)) ObjectRecord{};
  object->slot = slot;
  object->tenant = tenant;
  object->key_bytes = static_cast<std::uint16_t>(key.size());
  object->extent_count = static_cast<std::uint16_t>(extents.size());
  ExtentRecord* record = object->extents().data();
  for (const PlacedExtent& extent : extents) {
    new (record) ExtentRecord{.offset_bytes = extent.range.offset_bytes,
                              .units = static_cast<std::uint32_t>(
                                  RoundUpToSpaceUnits(extent.range.length_bytes) / kSpaceUnitBytes),
                              .segment = extent.segment,
                              .replica = extent.replica};
    ++record;
  }
  object->replica_count =
      extents.empty() ? 0 : static_cast<std::uint8_t>(extents.back().replica + 1);
  std::memcpy(record, key.data(), key.size());
  chunk.records[local % kChunkSlots] = object;
  chunk.taken[local % kChunkSlots / 64] |= std::uint64_t{1} << (local % 64);
  ++chunk.used;
  ++size_;
  first_with_room_ = at;  // NextSlot() went past the full chunks before it.
  Link(*object);
  return *object;
}

void ObjectTable::AddToIndex(ObjectRecord& object, std::uint64_t hash) {
  MC_CHECK(object.indexed == 0);
  index_.Insert(static_cast<std::uint32_t>(hash), object.slot);
  object.indexed = 1;
}

void ObjectTable::RemoveFromIndex(ObjectRecord& object, std::uint64_t hash) {
  MC_CHECK(object.indexed == 1);
  index_.Erase(static_cast<std::uint32_t>(hash), object.slot);
  object.indexed = 0;
}

void ObjectTable::Erase(ObjectRecord& object) {
  MC_CHECK(object.indexed == 0);
  Unlink(object);
  const std::size_t local = LocalOf(object.slot);
  const std::size_t at = local / kChunkSlots;
  chunks_[at]->records[local % kChunkSlots] = nullptr;
  chunks_[at]->taken[local % kChunkSlots / 64] &= ~(std::uint64_t{1} << (local % 64));
  heap_.Free(&object, object.block_bytes());
  --size_;
  first_with_room_ = std::min(first_with_room_, at);
  if (--chunks_[at]->used == 0) {
    chunks_[at].reset();
    while (!chunks_.empty() && !chunks_.back()) {
      chunks_.pop_back();
    }
  }
}

ObjectRecord& ObjectTable::DropReplicasOn(ObjectRecord& object, SegmentNumber segment) {
  std::array<bool, 256> lost{};
  for (const ExtentRecord& extent : object.extents()) {
    lost[extent.replica] = lost[extent.replica] || extent.segment == segment;
  }
  std::vector<ExtentRecord> kept;
  std::uint8_t replicas = 0;
  int last = -1;
  for (ExtentRecord extent : object.extents()) {
    if (lost[extent.replica]) {
      continue;
    }
    replicas += static_cast<int>(extent.replica) != last ? 1 : 0;
    last = static_cast<int>(extent.replica);
    extent.replica = static_cast<std::uint8_t>(replicas - 1);
    kept.push_back(extent);
  }
  MC_CHECK(!kept.empty());
  Unlink(object);
  const std::size_t bytes =
      sizeof(ObjectRecord) + kept.size() * sizeof(ExtentRecord) + object.key_bytes;
  auto* smaller = new (heap_.Allocate(bytes)) ObjectRecord(object);
  smaller->extent_count = static_cast<std::uint16_t>(kept.size());
  smaller->replica_count = replicas;
  std::memcpy(smaller->extents().data(), kept.data(), kept.size() * sizeof(ExtentRecord));
  std::memcpy(smaller->extents().data() + kept.size(), object.key().data(), object.key_bytes);
  *Place(object.slot) = smaller;
  heap_.Free(&object, object.block_bytes());
  Link(*smaller);
  return *smaller;
}

Slot ObjectTable::FirstOn(SegmentNumber segment) const {
  return segment < first_on_.size() ? first_on_[segment] : kNoSlot;
}

ExtentRecord& ObjectTable::ExtentOn(Slot slot, SegmentNumber segment) {
  return *std::ranges::find_if((*Place(slot))->extents(), [segment](const ExtentRecord& extent) {
    return extent.segment == segment;
  });
}

void ObjectTable::Link(ObjectRecord& object) {
  for (ExtentRecord& extent : object.extents()) {
    if (&extent != &ExtentOn(object.slot, extent.segment)) {
      continue;
    }
    if (extent.segment >= first_on_.size()) {
      first_on_.resize(extent.segment + 1, kNoSlot);
    }
    Slot& first = first_on_[extent.segment];
    extent.previous = kNoSlot;
    extent.next = first;
    if (first != kNoSlot) {
      ExtentOn(first, extent.segment).previous = object.slot;
    }
    first = object.slot;
  }
}

void ObjectTable::Unlink(ObjectRecord& object) {
  for (ExtentRecord& extent : object.extents()) {
    if (&extent != &ExtentOn(object.slot, extent.segment)) {
      continue;
    }
    (extent.previous != kNoSlot ? ExtentOn(extent.previous, extent.segment).next
                                : first_on_[extent.segment]) = extent.next;
    if (extent.next != kNoSlot) {
      ExtentOn(extent.next, extent.segment).previous = extent.previous;
    }
  }
}

std::size_t ObjectTable::memory_bytes() const {
  std::size_t chunks = 0;
  for (const auto& chunk : chunks_) {
    chunks += chunk ? sizeof(Chunk) : 0;
  }
  return heap_.memory_bytes() + index_.memory_bytes() + chunks;
}

}  // namespace mooncake::store
