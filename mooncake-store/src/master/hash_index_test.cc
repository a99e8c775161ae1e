#include "mooncake-store/src/master/hash_index.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

// Goal: the table equals a naive multimap over random insertions and removals, with few distinct
// hashes, so that runs are long and wrap around. Method: many seeds, sizes that grow and shrink.
TEST(HashIndex, EqualsANaiveMapForAnySeed) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    const std::uint64_t distinct = rng.Between(3, 4000);
    HashIndex index;
    std::map<std::uint32_t, std::uint32_t> twin;  // Value to hash.
    for (int step = 0; step < 3000; ++step) {
      const auto value = static_cast<std::uint32_t>(rng.Uniform(500));
      const auto found = twin.find(value);
      if (found != twin.end() && rng.Chance(step < 1500 ? 1 : 3, 4)) {
        index.Erase(found->second, value);
        twin.erase(found);
      } else if (found == twin.end()) {
        const auto hash = static_cast<std::uint32_t>(rng.Uniform(distinct) * 0x9e3779b9U);
        index.Insert(hash, value);
        twin.emplace(value, hash);
      }
      ASSERT_EQ(index.size(), twin.size());
    }
    std::set<std::uint32_t> visited;
    index.ForEach([&](std::uint32_t value) { EXPECT_TRUE(visited.insert(value).second); });
    EXPECT_EQ(visited.size(), twin.size());
    for (std::uint32_t value = 0; value < 500; ++value) {
      const auto found = twin.find(value);
      const std::uint32_t hash = found == twin.end() ? 77 : found->second;
      EXPECT_EQ(index.Find(hash, [&](std::uint32_t candidate) { return candidate == value; }),
                found == twin.end() ? HashIndex::kNone : value);
    }
  }
}

TEST(HashIndex, GivesItsMemoryBack) {
  HashIndex index;
  for (std::uint32_t value = 0; value < 100000; ++value) {
    index.Insert(value * 0x9e3779b9U, value);
  }
  EXPECT_LE(index.memory_bytes(), 100000U * 21);
  for (std::uint32_t value = 0; value < 100000; ++value) {
    index.Erase(value * 0x9e3779b9U, value);
  }
  EXPECT_EQ(index.memory_bytes(), 0U);
}

}  // namespace
}  // namespace mooncake::store
