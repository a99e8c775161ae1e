// An open-addressing table from 32-bit hashes to 32-bit values, 8 bytes an entry. The keys stay
// with the caller, who compares them when asked; so one table serves object keys and range ends
// alike.
//
// Thread-safety: none; the owner's lock.
// Memory:        10 to 20 bytes a value (load 0.4 to 0.8); given back as values are erased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mooncake-store/src/master/page_allocator.h"

namespace mooncake::store {

class HashIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;  // Is no value.

  // The first value under `hash` for which equal(value) holds, else kNone.
  template <typename Equal>
  [[nodiscard]] std::uint32_t Find(std::uint32_t hash, Equal equal) const {
    if (entries_.empty()) {
      return kNone;
    }
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Entry& entry = entries_[at];
      if (entry.value == kNone) {
        return kNone;
      }
      if (entry.hash == hash && equal(entry.value)) {
        return entry.value;
      }
    }
  }

  // Starts to load the place where Find(hash) will look first.
  void Prefetch(std::uint32_t hash) const {
    if (!entries_.empty()) {
      __builtin_prefetch(&entries_[hash & mask_]);
    }
  }

  // The value that Find(hash) would ask about first, or kNone: a hint to prefetch with.
  [[nodiscard]] std::uint32_t Peek(std::uint32_t hash) const {
    return entries_.empty() ? kNone : entries_[hash & mask_].value;
  }

  // `value` must not be in the table under this hash, nor be kNone.
  void Insert(std::uint32_t hash, std::uint32_t value);

  // `value` must be in the table under this hash.
  void Erase(std::uint32_t hash, std::uint32_t value);

  // Calls visit(value) for each value, in table order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Entry& entry : entries_) {
      if (entry.value != kNone) {
        visit(entry.value);
      }
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    std::uint32_t hash;
    std::uint32_t value;
  };

  void Rehash(std::size_t capacity);
  void Place(Entry entry);

  std::vector<Entry, PageAllocator<Entry>> entries_;  // A power of two, or none.
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace mooncake::store
