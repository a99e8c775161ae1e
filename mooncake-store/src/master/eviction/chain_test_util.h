// Chains of keys in few words. For tests only.
#pragma once

#include <initializer_list>
#include <vector>

#include "mooncake-store/src/master/eviction/policy.h"

namespace mooncake::store {

// Slots count up from the first one; kNoSlot: none has one.
inline std::vector<ChainKey> Keys(std::initializer_list<std::uint64_t> hashes, Slot first_slot) {
  std::vector<ChainKey> keys;
  keys.reserve(hashes.size());
  for (const std::uint64_t hash : hashes) {
    keys.push_back({hash, first_slot == kNoSlot ? kNoSlot : first_slot++});
  }
  return keys;
}

inline std::vector<std::uint64_t> HashesOf(const std::vector<ChainKey>& keys) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(keys.size());
  for (const ChainKey& key : keys) {
    hashes.push_back(key.hash);
  }
  return hashes;
}

}  // namespace mooncake::store
