#include "mooncake-store/src/master/object_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/key_hash.h"

namespace mooncake::store {
namespace {

struct Twin {
  std::string key;
  std::vector<PlacedExtent> extents;
};

// Goal: keys, slots, extents and the lists of objects on segments stay right. Method: many seeds;
// everything is compared with maps after each step.
TEST(ObjectTable, EqualsNaiveMapsForAnySeed) {
  constexpr std::uint32_t kShards = 4;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    ObjectTable table(1, kShards);
    std::map<Slot, Twin> twins;
    for (int step = 0; step < 1500; ++step) {
      const std::string key(rng.Between(1, 5), static_cast<char>('a' + rng.Uniform(26)));
      const std::uint64_t hash = HashKey(0, key);
      ObjectRecord* found = table.Find(hash, 0, key);
      if (found == nullptr) {
        std::vector<PlacedExtent> extents;
        const std::uint64_t replicas = rng.Between(1, 3);
        for (std::uint64_t replica = 0; replica < replicas; ++replica) {
          for (std::uint64_t part = rng.Between(1, 3); part > 0; --part) {
            extents.push_back({.segment = static_cast<SegmentNumber>(rng.Uniform(5)),
                               .replica = static_cast<std::uint8_t>(replica),
                               .range = {rng.Uniform(1000) * 64, 64}});
          }
        }
        const Slot slot = table.NextSlot();
        ASSERT_EQ(slot % kShards, 1U);
        ASSERT_FALSE(twins.contains(slot));
        ObjectRecord& object = table.Insert(slot, 0, key, extents);
        object.size_bytes = 0;
        table.AddToIndex(object, hash);
        twins[slot] = {key, extents};
      } else if (rng.Chance(1, 2)) {
        twins.erase(found->slot);
        table.RemoveFromIndex(*found, hash);
        table.Erase(*found);
      } else {
        const auto segment = static_cast<SegmentNumber>(rng.Uniform(5));
        std::set<std::uint8_t> lost;
        std::set<std::uint8_t> kept;
        Twin& twin = twins[found->slot];
        for (const PlacedExtent& extent : twin.extents) {
          if (extent.segment == segment) {
            lost.insert(extent.replica);
          }
        }
        std::vector<PlacedExtent> left;
        for (PlacedExtent extent : twin.extents) {
          if (!lost.contains(extent.replica)) {
            kept.insert(extent.replica);
            extent.replica = static_cast<std::uint8_t>(kept.size() - 1);
            left.push_back(extent);
          }
        }
        if (!lost.empty() && !left.empty()) {
          table.DropReplicasOn(*found, segment);
          twin.extents = left;
        }
      }
      ASSERT_EQ(table.size(), twins.size());
    }
    std::map<SegmentNumber, std::set<Slot>> on;
    for (const auto& [slot, twin] : twins) {
      const ObjectRecord* object = table.At(slot);
      ASSERT_NE(object, nullptr);
      EXPECT_EQ(object->key(), twin.key);
      EXPECT_EQ(table.Find(HashKey(0, twin.key), 0, twin.key), object);
      EXPECT_EQ(table.Find(HashKey(0, twin.key), 1, twin.key), nullptr);  // Another tenant.
      ASSERT_EQ(object->extents().size(), twin.extents.size());
      for (std::size_t at = 0; at < twin.extents.size(); ++at) {
        const ExtentRecord& extent = object->extents()[at];
        EXPECT_EQ(extent.segment, twin.extents[at].segment);
        EXPECT_EQ(extent.replica, twin.extents[at].replica);
        EXPECT_EQ(extent.offset_bytes, twin.extents[at].range.offset_bytes);
        on[extent.segment].insert(slot);
      }
    }
    // The lists are emptied from their heads.
    for (SegmentNumber segment = 0; segment < 6; ++segment) {
      std::set<Slot> listed;
      for (Slot slot = table.FirstOn(segment); slot != kNoSlot; slot = table.FirstOn(segment)) {
        EXPECT_TRUE(listed.insert(slot).second);
        ObjectRecord& object = *table.At(slot);
        for (const ExtentRecord& extent : object.extents()) {
          on[extent.segment].erase(slot);
        }
        table.RemoveFromIndex(object, HashKey(0, object.key()));
        table.Erase(object);
      }
      EXPECT_TRUE(on[segment].empty());
    }
    EXPECT_EQ(table.size(), 0U);
  }
}

}  // namespace
}  // namespace mooncake::store
