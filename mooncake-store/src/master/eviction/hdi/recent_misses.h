// What a lookup found out about blocks that were not there, for the puts that follow it.
//
// Direct-mapped: a later block may take an earlier one's place, which then counts as never seen.
//
// Thread-safety: none; the owner's lock.
// Memory:        512 KiB, from the first miss on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mooncake-store/src/master/eviction/hdi/reuse.h"

namespace mooncake::store {

class RecentMisses {
 public:
  void Note(std::uint64_t hash, const Reuse& reuse) {
    if (entries_.empty()) {
      entries_.resize(kEntries);
    }
    entries_[hash % kEntries] = {static_cast<std::uint32_t>(hash >> 32U), reuse, true};
  }
  // Of a block noted before and not yet taken.
  [[nodiscard]] std::optional<Reuse> Take(std::uint64_t hash) {
    if (entries_.empty()) {
      return std::nullopt;
    }
    Entry& entry = entries_[hash % kEntries];
    if (!entry.used || entry.hash_high != static_cast<std::uint32_t>(hash >> 32U)) {
      return std::nullopt;
    }
    entry.used = false;
    return entry.reuse;
  }

 private:
  static constexpr std::size_t kEntries = 65536;
  struct Entry {
    std::uint32_t hash_high = 0;
    Reuse reuse;
    bool used = false;
  };
  static_assert(sizeof(Entry) == 8);
  std::vector<Entry> entries_;
};

}  // namespace mooncake::store
