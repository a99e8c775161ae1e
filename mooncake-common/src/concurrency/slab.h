// A bounded store of objects that are used over and over, named by handles that go stale.
//
// A handle is generation << 32 | index. Returning an object advances the generation of its place,
// so an old handle finds nothing instead of somebody else's object (until the place was used 2^31
// times more). A handle is never 0 and never UINT64_MAX.
//
// Objects are default-constructed once, when first needed, and keep their state between uses (a
// vector keeps its capacity); who allocates one puts it in order. Memory grows by chunks up to the
// capacity and goes back when the slab is destroyed. Allocate and Free take no lock except when a
// chunk is added.
//
// Thread-safety: all methods from any thread. The object itself is its holder's: nobody may use a
// pointer after the handle was freed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake {

template <typename T>
class Slab {
 public:
  using Handle = std::uint64_t;

  struct Allocation {
    Handle handle;
    T* object;  // Null: the slab is full.
    explicit operator bool() const { return object != nullptr; }
  };

  // Holds up to `capacity` objects; 0 < capacity < 2^32 - 1. Allocates no object yet.
  explicit Slab(std::uint32_t capacity)
      : capacity_(capacity), chunks_((capacity + std::uint64_t{kChunk} - 1) / kChunk) {
    MC_CHECK(capacity > 0 && capacity < kNone);
  }
  ~Slab() {
    for (const auto& chunk : chunks_) {
      delete chunk.load(std::memory_order_relaxed);
    }
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // A free object, the one returned last if possible; no object when all are in use.
  [[nodiscard]] Allocation Allocate() {
    std::uint32_t index = Pop();
    while (index == kNone) {
      if (!Grow()) {
        return {.handle = 0, .object = nullptr};
      }
      index = Pop();
    }
    Place& place = PlaceAt(index);
    // Only the allocator of a free place writes its generation: even becomes odd.
    const std::uint32_t generation = place.generation.load(std::memory_order_relaxed) + 1;
    place.generation.store(generation, std::memory_order_release);
    return {.handle = (Handle{generation} << 32) | index, .object = &place.object};
  }

  // Returns the object. False, and nothing happens, if the handle is stale or was never given out.
  bool Free(Handle handle) {
    Place* const place = Find(handle);
    std::uint32_t generation = Generation(handle);
    // Of two that free the same handle at once, one wins.
    if (place == nullptr || !place->generation.compare_exchange_strong(generation, generation + 1,
                                                                       std::memory_order_acq_rel)) {
      return false;
    }
    Push(static_cast<std::uint32_t>(handle));
    return true;
  }

  // The object of a handle; null if the handle is stale or was never given out.
  [[nodiscard]] T* Get(Handle handle) {
    Place* const place = Find(handle);
    return place != nullptr &&
                   place->generation.load(std::memory_order_acquire) == Generation(handle)
               ? &place->object
               : nullptr;
  }

  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kChunk = 64;

  struct Place {
    std::atomic<std::uint32_t> generation{0};  // Odd while in use, so that no handle is 0.
    std::atomic<std::uint32_t> next{kNone};    // In the list of free places.
    T object{};
  };
  using Chunk = std::array<Place, kChunk>;

  static std::uint32_t Generation(Handle handle) {
    return static_cast<std::uint32_t>(handle >> 32);
  }

  // Free places form a stack, whose head carries a count of changes against the ABA problem.
  static std::uint64_t Head(std::uint64_t changes, std::uint32_t index) {
    return (changes << 32) | index;
  }

  Place& PlaceAt(std::uint32_t index) {
    return (*chunks_[index / kChunk].load(std::memory_order_acquire))[index % kChunk];
  }

  // The place a handle may mean; null if it cannot be one of ours.
  Place* Find(Handle handle) {
    const auto index = static_cast<std::uint32_t>(handle);
    if (index >= capacity_ || Generation(handle) % 2 == 0) {
      return nullptr;
    }
    Chunk* const chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[index % kChunk];
  }

  std::uint32_t Pop() {
    std::uint64_t head = head_.load(std::memory_order_acquire);
    while (static_cast<std::uint32_t>(head) != kNone) {
      const auto index = static_cast<std::uint32_t>(head);
      const std::uint32_t next = PlaceAt(index).next.load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(head, Head((head >> 32) + 1, next), std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        return index;
      }
    }
    return kNone;
  }

  void Push(std::uint32_t index) {
    Place& place = PlaceAt(index);
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    do {
      place.next.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    } while (!head_.compare_exchange_weak(head, Head((head >> 32) + 1, index),
                                          std::memory_order_acq_rel, std::memory_order_relaxed));
  }

  // Adds a chunk. False if the capacity is reached, unless another thread returned or added a place
  // meanwhile.
  bool Grow() {
    const MutexLock lock(grow_mutex_);
    if (static_cast<std::uint32_t>(head_.load(std::memory_order_acquire)) != kNone) {
      return true;
    }
    if (used_chunks_ == chunks_.size()) {
      return false;
    }
    const auto first = static_cast<std::uint32_t>(used_chunks_ * kChunk);
    chunks_[used_chunks_++].store(std::make_unique<Chunk>().release(), std::memory_order_release);
    for (std::uint32_t index = std::min(capacity_ - first, kChunk); index-- > 0;) {
      Push(first + index);
    }
    return true;
  }

  const std::uint32_t capacity_;
  std::vector<std::atomic<Chunk*>> chunks_;
  alignas(64) std::atomic<std::uint64_t> head_{Head(0, kNone)};
  Mutex grow_mutex_;
  std::size_t used_chunks_ MC_GUARDED_BY(grow_mutex_) = 0;
};

}  // namespace mooncake
