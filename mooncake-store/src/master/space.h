// Hands out ranges of one segment. Knows only what is free: a range that was handed out costs no
// memory here and no byte in the segment, so a segment of n pages holds exactly n page-sized
// objects.
//
// Thread-safety: any thread; one mutex, a leaf: nothing is called while it is held.
// Units:         bytes; ranges start at multiples of kSpaceUnitBytes and take up whole units, so a
//                range of 1 byte is handed out and freed as 1 byte and occupies 64.
// Cost:          O(1) to allocate and to free, 50 bytes of memory a free range.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/hash_index.h"

namespace mooncake::store {

inline constexpr std::uint64_t kSpaceUnitBytes = 64;  // A cache line; also the alignment.

struct SpaceRange {
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;

  friend auto operator<=>(const SpaceRange&, const SpaceRange&) = default;
};

// What a range of this length really takes.
[[nodiscard]] constexpr std::uint64_t RoundUpToSpaceUnits(std::uint64_t bytes) {
  return (bytes + kSpaceUnitBytes - 1) / kSpaceUnitBytes * kSpaceUnitBytes;
}

class SpaceAllocator {
 public:
  // A tail shorter than a unit is not used.
  explicit SpaceAllocator(std::uint64_t size_bytes);

  // One contiguous range of `bytes`, or nothing when no free range is long enough. `bytes` must not
  // be zero.
  [[nodiscard]] std::optional<SpaceRange> Allocate(std::uint64_t bytes);

  // Several ranges that together hold `bytes`, long ones first; all but the last are whole units.
  // Appends them to `out`. False, and nothing is taken, when that needs more than `max_ranges`.
  [[nodiscard]] bool AllocateScattered(std::uint64_t bytes, std::size_t max_ranges,
                                       std::vector<SpaceRange>& out);

  // Takes exactly this range; false when a part of it is not free or not in the segment.
  [[nodiscard]] bool Reserve(SpaceRange range);

  // Gives back ranges that were handed out, whole.
  void Free(std::span<const SpaceRange> ranges);

  [[nodiscard]] std::uint64_t capacity_bytes() const { return capacity_units_ * kSpaceUnitBytes; }
  // May be a moment old: takes no lock.
  [[nodiscard]] std::uint64_t free_bytes() const {
    return free_units_.load(std::memory_order_relaxed) * kSpaceUnitBytes;
  }

  // All free ranges in address order. O(n log n): for tests and dumps.
  [[nodiscard]] std::vector<SpaceRange> FreeRanges() const;

  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kNil = HashIndex::kNone;
  // Eight bins an octave of lengths, and one a length below eight units.
  static constexpr std::size_t kBins = 512;

  struct Node {  // A free range, in units.
    std::uint64_t begin;
    std::uint64_t length;
    std::uint32_t previous;  // In its bin; `next` also links unused nodes.
    std::uint32_t next;
  };

  static std::size_t BinOf(std::uint64_t units);
  // The first bin at or above `bin` that is not empty, else kBins.
  std::size_t NextBin(std::size_t bin) const MC_REQUIRES(mutex_);
  // The first range of the bin that is long enough, if it is among its first `tries`.
  std::uint32_t FirstFit(std::size_t bin, std::uint64_t units, int tries) const MC_REQUIRES(mutex_);
  std::uint32_t FindFit(std::uint64_t units) const MC_REQUIRES(mutex_);
  std::uint32_t FindByBegin(std::uint64_t begin) const MC_REQUIRES(mutex_);
  std::uint32_t FindByEnd(std::uint64_t end) const MC_REQUIRES(mutex_);
  void AddRange(std::uint64_t begin, std::uint64_t length) MC_REQUIRES(mutex_);
  void DropRange(std::uint32_t node) MC_REQUIRES(mutex_);
  // Takes `units` from the front of a free range.
  std::uint64_t TakeFront(std::uint32_t node, std::uint64_t units) MC_REQUIRES(mutex_);
  void FreeUnits(std::uint64_t begin, std::uint64_t length) MC_REQUIRES(mutex_);
  // Packs the nodes into less memory once most of it is unused.
  void ShrinkIfSparse() MC_REQUIRES(mutex_);

  const std::uint64_t capacity_units_;
  mutable Mutex mutex_;
  std::atomic<std::uint64_t> free_units_{0};  // Changed under the lock.
  std::vector<Node> nodes_ MC_GUARDED_BY(mutex_);
  std::uint32_t unused_ MC_GUARDED_BY(mutex_) = kNil;
  std::size_t live_ MC_GUARDED_BY(mutex_) = 0;
  HashIndex by_begin_ MC_GUARDED_BY(mutex_);
  HashIndex by_end_ MC_GUARDED_BY(mutex_);
  std::array<std::uint32_t, kBins> bins_ MC_GUARDED_BY(mutex_);
  std::array<std::uint64_t, kBins / 64> occupied_ MC_GUARDED_BY(mutex_){};  // A bit a bin.
  std::vector<std::uint32_t> scratch_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::store
