#include "mooncake-store/src/master/eviction/chain_tracker.h"

#include <gtest/gtest.h>

namespace mooncake::store {
namespace {

std::vector<ChainKey> Keys(std::initializer_list<std::uint64_t> hashes, Slot first_slot) {
  std::vector<ChainKey> keys;
  keys.reserve(hashes.size());
  for (const std::uint64_t hash : hashes) {
    keys.push_back({hash, first_slot == kNoSlot ? kNoSlot : first_slot++});
  }
  return keys;
}

std::vector<std::uint64_t> ParentsOf(ChainTracker& tracker, std::uint64_t client,
                                     std::uint64_t chain, std::uint32_t position,
                                     const std::vector<ChainKey>& keys) {
  std::vector<ChainKey> parents(keys.size());
  tracker.OnPut({.client = client, .chain_id = chain, .position = position, .keys = keys}, parents);
  std::vector<std::uint64_t> hashes;
  hashes.reserve(parents.size());
  for (const ChainKey& parent : parents) {
    hashes.push_back(parent.hash);
  }
  return hashes;
}

using Hashes = std::vector<std::uint64_t>;

TEST(ChainTracker, TakesTheParentFromTheLookupThatFoundTheKeyMissing) {
  ChainTracker tracker;
  std::vector<ChainKey> lookup = Keys({1, 2, 3, 4, 5}, kNoSlot);
  lookup[0].slot = 10;
  lookup[3].slot = 13;
  tracker.OnLookup({.client = 1, .chain_id = 7, .keys = lookup});
  const std::vector<ChainKey> puts = Keys({2, 3, 5}, 20);
  std::vector<ChainKey> parents(3);
  tracker.OnPut({.client = 1, .chain_id = 8, .keys = puts}, parents);
  EXPECT_EQ(parents[0].slot, 10U);
  EXPECT_EQ(parents[1].slot, 20U);  // The slot that key 2 was given a moment ago.
  EXPECT_EQ(parents[2].hash, 4U);
  EXPECT_EQ(parents[2].slot, 13U);
}

TEST(ChainTracker, JoinsWindowsOfLookupsAndOfPuts) {
  ChainTracker tracker;
  tracker.OnLookup({.client = 1, .chain_id = 7, .keys = Keys({1, 2}, kNoSlot)});
  tracker.OnLookup({.client = 1, .chain_id = 7, .position = 2, .keys = Keys({3, 4}, kNoSlot)});
  EXPECT_EQ(ParentsOf(tracker, 1, 8, 0, Keys({1, 2}, 5)), (Hashes{0, 1}));
  EXPECT_EQ(ParentsOf(tracker, 1, 8, 2, Keys({3, 4}, 7)), (Hashes{2, 3}));
  // Without a lookup, the call itself is the chain.
  EXPECT_EQ(ParentsOf(tracker, 2, 9, 0, Keys({51, 52}, 9)), (Hashes{0, 51}));
  EXPECT_EQ(ParentsOf(tracker, 2, 9, 2, Keys({53}, 11)), (Hashes{52}));
  EXPECT_EQ(ParentsOf(tracker, 2, 10, 0, Keys({54}, 12)), (Hashes{0}));
}

TEST(ChainTracker, KeepsClientsAndTheirLastLookupsApart) {
  ChainTracker tracker;
  tracker.OnLookup({.client = 1, .chain_id = 1, .keys = Keys({1, 2, 3}, kNoSlot)});
  tracker.OnLookup({.client = 2, .chain_id = 1, .keys = Keys({9, 2, 8}, kNoSlot)});
  tracker.OnLookup({.client = 1, .chain_id = 2, .keys = Keys({4, 5}, kNoSlot)});
  EXPECT_EQ(ParentsOf(tracker, 2, 5, 0, Keys({2}, 5)), (Hashes{9}));
  EXPECT_EQ(ParentsOf(tracker, 1, 5, 0, Keys({2}, 5)), (Hashes{1}));
  EXPECT_EQ(ParentsOf(tracker, 1, 6, 0, Keys({5}, 6)), (Hashes{4}));
  for (std::uint64_t chain = 10; chain < 14; ++chain) {
    tracker.OnLookup({.client = 1, .chain_id = chain, .keys = Keys({chain}, kNoSlot)});
  }
  EXPECT_EQ(ParentsOf(tracker, 1, 7, 0, Keys({3}, 6)), (Hashes{0}));  // Forgotten.
}

TEST(ChainTracker, ForgetsTheClientsSilentLongest) {
  ChainTracker tracker;
  for (std::uint64_t client = 0; client < 300; ++client) {
    tracker.OnLookup({.client = client, .chain_id = 1, .keys = Keys({1, 2}, kNoSlot)});
  }
  EXPECT_EQ(ParentsOf(tracker, 299, 5, 0, Keys({2}, 5)), (Hashes{1}));
  EXPECT_EQ(ParentsOf(tracker, 0, 5, 0, Keys({2}, 5)), (Hashes{0}));
}

}  // namespace
}  // namespace mooncake::store
