#include "mooncake-store/src/client/local_buffer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

struct Memory {
  explicit Memory(std::size_t size) : bytes(size), buffer(bytes) {}
  std::vector<std::byte> bytes;
  LocalBuffer buffer;
};

TEST(LocalBuffer, GivesTheWholeAndNothingMore) {
  Memory memory(1000);
  EXPECT_FALSE(memory.buffer.TryTake(1001).has_value());
  EXPECT_FALSE(memory.buffer.TryTake(0).has_value());
  const auto all = memory.buffer.TryTake(1000);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->data(), memory.bytes.data());
  EXPECT_EQ(all->size(), 1000U);
  EXPECT_FALSE(memory.buffer.TryTake(1).has_value());
  memory.buffer.Release(*all);
  EXPECT_TRUE(memory.buffer.TryTake(1000).has_value());
}

TEST(LocalBuffer, KnowsItsMemory) {
  Memory memory(256);
  EXPECT_TRUE(memory.buffer.Contains(memory.bytes.data(), 256));
  EXPECT_FALSE(memory.buffer.Contains(memory.bytes.data() + 1, 256));
  EXPECT_FALSE(memory.buffer.Contains(nullptr, 1));
  EXPECT_FALSE(memory.buffer.Contains(memory.bytes.data() + 8, UINT64_MAX));
}

TEST(LocalBuffer, OfNoMemoryNeverFits) {
  LocalBuffer buffer({});
  EXPECT_FALSE(buffer.TryTake(1).has_value());
}

// Goal: ranges never overlap and all comes back, whatever the order. Method: random takes and
// releases against a map of owned bytes.
TEST(LocalBuffer, NeverGivesAByteTwiceForAnySeed) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    Memory memory(64 + rng.Uniform(4096));
    std::vector<char> owned(memory.bytes.size(), 0);
    std::vector<std::span<std::byte>> held;
    const auto own = [&](std::span<std::byte> range) {
      for (std::byte& byte : range) {
        char& owner = owned.at(static_cast<std::size_t>(&byte - memory.bytes.data()));
        ASSERT_EQ(owner, 0);
        owner = 1;
      }
      held.push_back(range);
    };
    for (int step = 0; step < 300; ++step) {
      if (held.empty() || rng.Chance(1, 2)) {
        if (const auto range = memory.buffer.TryTake(rng.Uniform(memory.bytes.size() + 2))) {
          own(*range);
        }
        continue;
      }
      const std::size_t which = rng.Uniform(held.size());
      for (std::byte& byte : held[which]) {
        owned.at(static_cast<std::size_t>(&byte - memory.bytes.data())) = 0;
      }
      memory.buffer.Release(held[which]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
    for (const auto range : held) {
      memory.buffer.Release(range);
    }
    EXPECT_TRUE(memory.buffer.TryTake(memory.bytes.size()).has_value());
  }
}

}  // namespace
}  // namespace mooncake::store
