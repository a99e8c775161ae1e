// Values by slot, in chunks that exist only while one of their slots is in use: growing moves
// nothing, and memory is given back.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "mooncake-store/src/master/eviction/policy.h"
#include "mooncake-store/src/master/page_allocator.h"

namespace mooncake::store {

template <typename T>
class SlotArray {
 public:
  // A fresh value for a slot that has none.
  T& Add(Slot slot) {
    const std::size_t chunk = slot / kChunkSlots;
    if (chunk >= chunks_.size()) {
      chunks_.resize(chunk + 1);
    }
    Chunk& home = chunks_[chunk];
    if (home.values.empty()) {
      home.values.resize(kChunkSlots);
    }
    ++home.used;
    T& value = home.values[slot % kChunkSlots];
    value = T{};
    return value;
  }

  // Null when no slot of its chunk is in use; else the value, which T itself must be able to call
  // unused (a fresh chunk holds T{}).
  [[nodiscard]] T* Find(Slot slot) {
    const std::size_t chunk = slot / kChunkSlots;
    if (chunk >= chunks_.size() || chunks_[chunk].values.empty()) {
      return nullptr;
    }
    return &chunks_[chunk].values[slot % kChunkSlots];
  }

  // Above all slots with a value.
  [[nodiscard]] std::size_t end() const { return chunks_.size() * kChunkSlots; }

  // For a slot that has a value.
  [[nodiscard]] T& At(Slot slot) { return chunks_[slot / kChunkSlots].values[slot % kChunkSlots]; }

  // For a slot that has a value.
  void Remove(Slot slot) {
    Chunk& chunk = chunks_[slot / kChunkSlots];
    chunk.values[slot % kChunkSlots] = T{};
    if (--chunk.used == 0) {
      chunk = {};
    }
  }

  // Calls visit(slot, value) for all values of chunks in use, in slot order, those of T{} too.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      for (std::size_t at = 0; at < chunks_[chunk].values.size(); ++at) {
        visit(static_cast<Slot>(chunk * kChunkSlots + at), chunks_[chunk].values[at]);
      }
    }
  }

 private:
  static constexpr std::size_t kChunkSlots = 4096;
  struct Chunk {
    std::vector<T, PageAllocator<T>> values;  // All of them, or none.
    std::uint32_t used = 0;
  };
  std::vector<Chunk> chunks_;
};

}  // namespace mooncake::store
