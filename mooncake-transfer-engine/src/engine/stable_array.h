// A growing array whose elements never move and are never destroyed before it: readers need no lock
// and may keep pointers.
//
// Thread-safety: At() from any thread; Append() by one thread at a time (the owner's lock).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace mooncake::transfer {

template <typename T>
class StableArray {
 public:
  static constexpr std::size_t kChunk = 64;
  static constexpr std::size_t kMaxChunks = 1024;
  static constexpr std::size_t kMaxSize = kChunk * kMaxChunks;

  StableArray() = default;
  StableArray(const StableArray&) = delete;
  StableArray& operator=(const StableArray&) = delete;
  ~StableArray() {
    for (auto& chunk : chunks_) {
      delete chunk.load();
    }
  }

  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_acquire); }

  // nullptr beyond the end.
  [[nodiscard]] T* At(std::size_t index) const {
    if (index >= size()) {
      return nullptr;
    }
    return (*chunks_[index / kChunk].load(std::memory_order_acquire))[index % kChunk].get();
  }

  // nullptr when the array is full.
  template <typename... Args>
  T* Append(Args&&... args) {
    const std::size_t index = size_.load(std::memory_order_relaxed);
    if (index == kMaxSize) {
      return nullptr;
    }
    auto& slot = chunks_[index / kChunk];
    if (slot.load(std::memory_order_relaxed) == nullptr) {
      slot.store(new Chunk(), std::memory_order_release);
    }
    auto& element = (*slot.load(std::memory_order_relaxed))[index % kChunk];
    element = std::make_unique<T>(std::forward<Args>(args)...);
    size_.store(index + 1, std::memory_order_release);
    return element.get();
  }

 private:
  using Chunk = std::array<std::unique_ptr<T>, kChunk>;
  std::array<std::atomic<Chunk*>, kMaxChunks> chunks_{};
  std::atomic<std::size_t> size_ = 0;
};

}  // namespace mooncake::transfer
