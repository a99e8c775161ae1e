// Values by slot, in chunks that exist only while one of their slots is in use: growing moves
// nothing, and memory is given back.
//
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "mooncake-store/src/master/eviction/policy.h"

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
    if (!chunks_[chunk]) {
      chunks_[chunk] = std::make_unique<Chunk>();
    }
    ++chunks_[chunk]->used;
    T& value = chunks_[chunk]->values[slot % kChunkSlots];
    value = T{};
    return value;
  }

  // Null when no slot of its chunk is in use; else the value, which T itself must be able to call
  // unused (a fresh chunk holds T{}).
  [[nodiscard]] T* Find(Slot slot) {
    const std::size_t chunk = slot / kChunkSlots;
    if (chunk >= chunks_.size() || !chunks_[chunk]) {
      return nullptr;
    }
    return &chunks_[chunk]->values[slot % kChunkSlots];
  }

  // For a slot that has a value.
  [[nodiscard]] T& At(Slot slot) { return chunks_[slot / kChunkSlots]->values[slot % kChunkSlots]; }

  // For a slot that has a value.
  void Remove(Slot slot) {
    std::unique_ptr<Chunk>& chunk = chunks_[slot / kChunkSlots];
    chunk->values[slot % kChunkSlots] = T{};
    if (--chunk->used == 0) {
      chunk.reset();
    }
  }

 private:
  static constexpr std::size_t kChunkSlots = 4096;
  struct Chunk {
    std::uint32_t used = 0;
    std::array<T, kChunkSlots> values{};
  };
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace mooncake::store
