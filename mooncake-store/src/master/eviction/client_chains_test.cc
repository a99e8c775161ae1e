#include "mooncake-store/src/master/eviction/client_chains.h"

#include <gtest/gtest.h>

#include "mooncake-store/src/master/eviction/chain_test_util.h"

namespace mooncake::store {
namespace {

using Hashes = std::vector<std::uint64_t>;

Hashes ParentsOf(ClientChains& chains, std::uint64_t chain, std::uint32_t position,
                 const std::vector<ChainKey>& keys) {
  std::vector<ChainKey> parents(keys.size());
  chains.OnPut({.chain_id = chain, .position = position, .keys = keys}, parents);
  return HashesOf(parents);
}

bool Asks(ClientChains& chains, std::uint64_t chain, std::uint32_t position,
          const std::vector<ChainKey>& keys) {
  return chains.OnLookup({.chain_id = chain, .position = position, .keys = keys}, false);
}

bool Reads(ClientChains& chains, std::uint64_t chain, std::uint32_t position,
           const std::vector<ChainKey>& keys) {
  return chains.OnLookup({.chain_id = chain, .position = position, .keys = keys}, true);
}

TEST(ClientChains, TakesTheParentFromTheLookupThatFoundTheKeyMissing) {
  ClientChains chains;
  std::vector<ChainKey> lookup = Keys({1, 2, 3, 4, 5}, kNoSlot);
  lookup[0].slot = 10;
  lookup[3].slot = 13;
  Asks(chains, 7, 0, lookup);
  const std::vector<ChainKey> puts = Keys({2, 3, 5}, 20);
  std::vector<ChainKey> parents(3);
  chains.OnPut({.chain_id = 8, .keys = puts}, parents);
  EXPECT_EQ(HashesOf(parents), (Hashes{1, 2, 4}));
  EXPECT_EQ(parents[0].slot, 10U);
  EXPECT_EQ(parents[1].slot, 20U);  // As the put before it was given.
  EXPECT_EQ(parents[2].slot, 13U);
}

TEST(ClientChains, JoinsWindowsOfLookupsAndOfPuts) {
  ClientChains chains;
  Asks(chains, 7, 0, Keys({1, 2}, kNoSlot));
  Asks(chains, 7, 2, Keys({3, 4}, kNoSlot));
  EXPECT_EQ(ParentsOf(chains, 8, 0, Keys({1, 2}, 5)), (Hashes{0, 1}));
  EXPECT_EQ(ParentsOf(chains, 8, 2, Keys({3, 4}, 7)), (Hashes{2, 3}));
  // Without a lookup, the call itself is the chain.
  EXPECT_EQ(ParentsOf(chains, 9, 0, Keys({6, 7}, 9)), (Hashes{0, 6}));
  EXPECT_EQ(ParentsOf(chains, 9, 2, Keys({8}, 11)), (Hashes{7}));
  EXPECT_EQ(ParentsOf(chains, 10, 2, Keys({8}, 11)), (Hashes{0}));
}

// Prefill takes its time: others are looked up between a lookup and the puts that follow it.
TEST(ClientChains, FindsALookupBehindManyOthersByWhereItsMissesBegin) {
  ClientChains chains;
  std::vector<ChainKey> lookup = Keys({1, 2, 3, 4, 5}, kNoSlot);
  lookup[0].slot = 10;
  lookup[1].slot = 11;
  lookup[3].slot = 13;
  Asks(chains, 1, 0, lookup);
  for (std::uint64_t chain = 2; chain < 60; ++chain) {
    Asks(chains, chain, 0, Keys({100 + chain}, kNoSlot));
  }
  EXPECT_EQ(chains.ParentOfFirst({.chain_id = 70, .keys = Keys({3}, kNoSlot)}).slot, 11U);
  EXPECT_EQ(ParentsOf(chains, 70, 0, Keys({3}, 20)), (Hashes{2}));
  EXPECT_EQ(ParentsOf(chains, 71, 0, Keys({5}, 21)), (Hashes{4}));
  for (std::uint64_t chain = 60; chain < 70; ++chain) {
    Asks(chains, chain, 0, Keys({1, 2}, 10));
  }
  EXPECT_EQ(ParentsOf(chains, 72, 0, Keys({5}, 21)), (Hashes{0}));  // Forgotten.
}

TEST(ClientChains, KnowsTheParentOfAWindowsFirstKeyBeforeTheKeyHasASlot) {
  ClientChains chains;
  EXPECT_EQ(ParentsOf(chains, 5, 0, Keys({1, 2}, 7)), (Hashes{0, 1}));
  EXPECT_EQ(chains.ParentOfFirst({.chain_id = 5, .position = 2, .keys = Keys({3}, 9)}).slot, 8U);
  EXPECT_EQ(chains.ParentOfFirst({.chain_id = 6, .keys = Keys({3}, 9)}).hash, 0U);
}

// Goal: asking whether, then where, then where once more is one use; asking twice is two.
TEST(ClientChains, TellsAReadFromASecondUse) {
  ClientChains chains;
  EXPECT_FALSE(Asks(chains, 1, 0, Keys({1, 2}, 1)));
  EXPECT_FALSE(Asks(chains, 1, 2, Keys({3, 4}, 3)));
  EXPECT_TRUE(Asks(chains, 1, 2, Keys({3, 4}, 3)));  // The message came twice.
  EXPECT_TRUE(Reads(chains, 3, 0, Keys({1}, 1)));
  EXPECT_TRUE(Reads(chains, 3, 1, Keys({3, 4}, 3)));  // Its own cache knew 2.
  EXPECT_TRUE(Reads(chains, 3, 0, Keys({1, 4}, 3)));  // Renews its leases.
  EXPECT_FALSE(Reads(chains, 4, 0, Keys({1}, 1)));    // Read twice, looked up once.
  EXPECT_FALSE(Asks(chains, 5, 0, Keys({1, 2}, 1)));
  EXPECT_FALSE(Asks(chains, 6, 0, Keys({1, 2}, 1)));
  EXPECT_FALSE(Reads(chains, 7, 0, Keys({2, 1}, 1)));  // In another order: another chain.
  EXPECT_TRUE(Reads(chains, 8, 0, Keys({2}, 1)));      // The tail alone; the head lay elsewhere.
}

TEST(ClientChains, AReadWithoutALookupIsOneUseHoweverManyWindowsAndRenewalsItHas) {
  ClientChains chains;
  EXPECT_FALSE(Reads(chains, 1, 0, Keys({1, 2}, 1)));
  EXPECT_FALSE(Reads(chains, 1, 2, Keys({3, 4}, 3)));  // Was not heard yet.
  EXPECT_TRUE(Reads(chains, 1, 0, Keys({2}, 1)));
  EXPECT_FALSE(Reads(chains, 2, 0, Keys({1, 2}, 1)));
  // Calls that name no chain are never one.
  EXPECT_FALSE(Asks(chains, 0, 0, Keys({7}, 7)));
  EXPECT_FALSE(Asks(chains, 0, 0, Keys({7}, 7)));
}

TEST(ClientChains, ForgetsTheOldestLookupsWhenTheyGrowLong) {
  ClientChains chains;
  std::vector<ChainKey> longest(kMaxKeysPerBatch);
  for (std::uint64_t chain = 1; chain < 10; ++chain) {
    for (std::size_t at = 0; at < longest.size(); ++at) {
      longest[at] = {.hash = chain * 1000000 + at};
    }
    Asks(chains, chain, 0, longest);
    EXPECT_LE(chains.key_count(), ClientChains::kKeys);
  }
  EXPECT_EQ(ParentsOf(chains, 20, 0, Keys({9000007}, 1)), (Hashes{9000006}));
  EXPECT_EQ(ParentsOf(chains, 21, 0, Keys({1000000}, 1)), (Hashes{0}));
  EXPECT_FALSE(Reads(chains, 22, 0, Keys({1000000}, 1)));
}

}  // namespace
}  // namespace mooncake::store
