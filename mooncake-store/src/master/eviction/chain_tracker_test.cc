#include "mooncake-store/src/master/eviction/chain_tracker.h"

#include <gtest/gtest.h>

#include "mooncake-store/src/master/eviction/chain_test_util.h"

namespace mooncake::store {
namespace {

// Of the one key.
std::uint64_t ParentOf(ChainTracker& tracker, std::uint64_t client, std::uint64_t hash) {
  const std::vector<ChainKey> keys = Keys({hash}, 5);
  std::vector<ChainKey> parents(1);
  tracker.OnPut({.client = client, .chain_id = 1000, .keys = keys}, parents);
  return parents[0].hash;
}

TEST(ChainTracker, KeepsClientsApart) {
  ChainTracker tracker;
  EXPECT_FALSE(
      tracker.OnLookup({.client = 1, .chain_id = 1, .keys = Keys({1, 2, 3}, kNoSlot)}, false));
  EXPECT_FALSE(
      tracker.OnLookup({.client = 2, .chain_id = 1, .keys = Keys({9, 2, 8}, kNoSlot)}, false));
  EXPECT_EQ(tracker.ParentOfFirst({.client = 2, .keys = Keys({2}, kNoSlot)}).hash, 9U);
  EXPECT_EQ(ParentOf(tracker, 2, 2), 9U);
  EXPECT_EQ(ParentOf(tracker, 1, 2), 1U);
  // One client has not asked for what another has.
  EXPECT_FALSE(tracker.OnLookup({.client = 3, .chain_id = 2, .keys = Keys({1, 2}, 1)}, true));
  EXPECT_TRUE(tracker.OnLookup({.client = 1, .chain_id = 2, .keys = Keys({1, 2}, 1)}, true));
}

TEST(ChainTracker, ForgetsTheClientsSilentLongest) {
  ChainTracker tracker;
  for (std::uint64_t client = 0; client < ChainTracker::kClients + 40; ++client) {
    tracker.OnLookup({.client = client, .chain_id = 1, .keys = Keys({1, 2}, kNoSlot)}, false);
  }
  EXPECT_EQ(ParentOf(tracker, ChainTracker::kClients + 39, 2), 1U);
  EXPECT_EQ(ParentOf(tracker, 40, 2), 1U);
  EXPECT_EQ(ParentOf(tracker, 39, 2), 0U);
}

TEST(ChainTracker, ForgetsClientsWhenTheirLookupsTakeTooMuch) {
  ChainTracker tracker;
  const std::vector<ChainKey> keys(kMaxKeysPerBatch, ChainKey{.hash = 5});
  const std::uint64_t fit = ChainTracker::kKeys / kMaxKeysPerBatch;
  tracker.OnLookup({.client = 1, .chain_id = 1, .keys = Keys({1, 2}, kNoSlot)}, false);
  for (std::uint64_t client = 2; client <= fit; ++client) {
    tracker.OnLookup({.client = client, .chain_id = 1, .keys = keys}, false);
  }
  EXPECT_EQ(ParentOf(tracker, 1, 2), 1U);
  for (std::uint64_t client = fit + 1; client <= 2 * fit; ++client) {
    tracker.OnLookup({.client = client, .chain_id = 1, .keys = keys}, false);
  }
  EXPECT_EQ(ParentOf(tracker, 1, 2), 0U);
}

}  // namespace
}  // namespace mooncake::store
