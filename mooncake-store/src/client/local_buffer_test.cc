#include "mooncake-store/src/client/local_buffer.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;

constexpr Instant kNow{std::chrono::seconds(100)};

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
  EXPECT_EQ(memory.buffer.used_bytes(), 1000U);
  EXPECT_FALSE(memory.buffer.TryTake(1).has_value());
  memory.buffer.Release(*all);
  EXPECT_EQ(memory.buffer.used_bytes(), 0U);
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
  EXPECT_FALSE(buffer.Queue(1, kNow).has_value());
}

TEST(LocalBuffer, ServesWaitersInOrderSoThatLargeOnesAreNotStarved) {
  Memory memory(256);
  const auto first = memory.buffer.TryTake(128);
  const auto second = memory.buffer.TryTake(128);
  const auto large = memory.buffer.Queue(256, kNow + milliseconds(10));
  const auto small = memory.buffer.Queue(64, kNow + milliseconds(10));
  EXPECT_EQ(memory.buffer.Release(*first), 0U);
  // There is room for the small one, and for a newcomer, but the large one was first.
  EXPECT_EQ(memory.buffer.Poll(*small, kNow).state, LocalBuffer::WaitState::kWaiting);
  EXPECT_FALSE(memory.buffer.TryTake(64).has_value());
  EXPECT_EQ(memory.buffer.Release(*second), 1U);
  const auto granted = memory.buffer.Poll(*large, kNow);
  ASSERT_EQ(granted.state, LocalBuffer::WaitState::kGranted);
  EXPECT_EQ(granted.range.size(), 256U);
  EXPECT_EQ(memory.buffer.Release(granted.range), 1U);
  EXPECT_EQ(memory.buffer.Poll(*small, kNow).state, LocalBuffer::WaitState::kGranted);
}

TEST(LocalBuffer, LetsTheNextOnesInWhenALargeWaiterExpires) {
  Memory memory(256);
  const auto held = memory.buffer.TryTake(128);
  const auto large = memory.buffer.Queue(256, kNow + milliseconds(10));
  const auto small = memory.buffer.Queue(64, kNow + milliseconds(50));
  EXPECT_EQ(memory.buffer.Poll(*large, kNow + milliseconds(9)).state,
            LocalBuffer::WaitState::kWaiting);
  EXPECT_EQ(memory.buffer.Poll(*large, kNow + milliseconds(10)).state,
            LocalBuffer::WaitState::kExpired);
  EXPECT_EQ(memory.buffer.Poll(*small, kNow + milliseconds(10)).state,
            LocalBuffer::WaitState::kGranted);
  memory.buffer.Release(*held);
}

TEST(LocalBuffer, TakesBackWhatWasGrantedToAnAbandonedTicket) {
  Memory memory(64);
  const auto held = memory.buffer.TryTake(64);
  const auto ticket = memory.buffer.Queue(64, kNow);
  memory.buffer.Release(*held);
  EXPECT_EQ(memory.buffer.used_bytes(), 64U);
  memory.buffer.Abandon(*ticket);
  EXPECT_EQ(memory.buffer.used_bytes(), 0U);
  EXPECT_EQ(memory.buffer.Poll(*ticket, kNow).state, LocalBuffer::WaitState::kExpired);
}

// Goal: ranges never overlap and all comes back, whatever the order. Method: random takes, waits,
// expiries and releases against a map of owned bytes.
TEST(LocalBuffer, NeverGivesAByteTwiceForAnySeed) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    Memory memory(64 + rng.Uniform(4096));
    std::vector<char> owned(memory.bytes.size(), 0);
    std::vector<std::span<std::byte>> held;
    std::vector<LocalBuffer::Ticket> tickets;
    Instant now = kNow;
    const auto own = [&](std::span<std::byte> range) {
      for (std::byte& byte : range) {
        char& owner = owned.at(static_cast<std::size_t>(&byte - memory.bytes.data()));
        ASSERT_EQ(owner, 0);
        owner = 1;
      }
      held.push_back(range);
    };
    for (int step = 0; step < 300; ++step) {
      now += milliseconds(rng.Uniform(3));
      switch (rng.Uniform(4)) {
        case 0:
          if (const auto range = memory.buffer.TryTake(rng.Uniform(memory.bytes.size() + 2))) {
            own(*range);
          }
          break;
        case 1:
          if (const auto ticket = memory.buffer.Queue(1 + rng.Uniform(memory.bytes.size()),
                                                      now + milliseconds(rng.Uniform(20)))) {
            tickets.push_back(*ticket);
          }
          break;
        case 2:
          std::erase_if(tickets, [&](LocalBuffer::Ticket ticket) {
            if (rng.Chance(1, 10)) {
              memory.buffer.Abandon(ticket);
              return true;
            }
            const auto answer = memory.buffer.Poll(ticket, now);
            if (answer.state == LocalBuffer::WaitState::kGranted) {
              own(answer.range);
            }
            return answer.state != LocalBuffer::WaitState::kWaiting;
          });
          break;
        default:
          if (!held.empty()) {
            const std::size_t which = rng.Uniform(held.size());
            for (std::byte& byte : held[which]) {
              owned.at(static_cast<std::size_t>(&byte - memory.bytes.data())) = 0;
            }
            memory.buffer.Release(held[which]);
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
          }
      }
    }
    for (const auto ticket : tickets) {
      memory.buffer.Abandon(ticket);
    }
    for (const auto range : held) {
      memory.buffer.Release(range);
    }
    EXPECT_EQ(memory.buffer.used_bytes(), 0U);
    EXPECT_TRUE(memory.buffer.TryTake(memory.bytes.size()).has_value());
  }
}

}  // namespace
}  // namespace mooncake::store
