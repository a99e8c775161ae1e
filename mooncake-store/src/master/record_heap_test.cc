#include "mooncake-store/src/master/record_heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

// Goal: no two records overlap and none moves. Method: each is filled with its own byte and checked
// when it is freed.
TEST(RecordHeap, RecordsNeverOverlapForAnySeed) {
  struct Held {
    unsigned char* bytes;
    std::size_t size;
    unsigned char fill;
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    RecordHeap heap;
    std::vector<Held> held;
    const auto drop = [&](std::size_t at) {
      std::swap(held[at], held.back());
      for (std::size_t byte = 0; byte < held.back().size; ++byte) {
        ASSERT_EQ(held.back().bytes[byte], held.back().fill);
      }
      heap.Free(held.back().bytes, held.back().size);
      held.pop_back();
    };
    for (int step = 0; step < 6000; ++step) {
      if (held.empty() || rng.Chance(step < 3000 ? 3 : 1, 4)) {
        const std::size_t size = rng.Chance(1, 50) ? rng.Between(1000, 5000) : rng.Between(1, 300);
        auto* bytes = static_cast<unsigned char*>(heap.Allocate(size));
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(bytes) % 16, 0U);
        const auto fill = static_cast<unsigned char>(rng.Next());
        std::memset(bytes, fill, size);
        held.push_back({bytes, size, fill});
      } else {
        drop(rng.Uniform(held.size()));
      }
    }
    while (!held.empty()) {
      drop(held.size() - 1);
    }
    EXPECT_LE(heap.memory_bytes(), 65536U);
  }
}

}  // namespace
}  // namespace mooncake::store
