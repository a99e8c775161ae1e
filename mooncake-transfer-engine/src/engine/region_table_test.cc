#include "mooncake-transfer-engine/src/engine/region_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::transfer {
namespace {

using namespace std::chrono_literals;

Region At(std::uint64_t address, std::uint64_t length, bool remote = true) {
  return Region{.address = address, .length_bytes = length, .remote_accessible = remote};
}

TEST(RegionTable, RefusesEmptyWrappingAndOverlappingRegions) {
  RegionTable table;
  EXPECT_EQ(table.Add(At(100, 0)).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(table.Add(At(~std::uint64_t{0} - 5, 10)).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(table.Add(At(100, 50)));
  for (const Region& bad : {At(100, 50), At(149, 1), At(60, 41), At(90, 100), At(110, 5)}) {
    EXPECT_EQ(table.Add(bad).error().code, ErrorCode::kAddressOverlapped) << bad.address;
  }
  EXPECT_TRUE(table.Add(At(150, 1)));
  EXPECT_TRUE(table.Add(At(99, 1)));
}

TEST(RegionTable, AddsABatchWholeOrNotAtAll) {
  RegionTable table;
  const std::vector<Region> clashing = {At(100, 10), At(300, 10), At(305, 1)};
  EXPECT_EQ(table.Add(clashing).error().code, ErrorCode::kAddressOverlapped);
  EXPECT_TRUE(table.Regions().empty());
  const std::vector<Region> good = {At(300, 10), At(100, 10)};
  ASSERT_TRUE(table.Add(good));
  ASSERT_EQ(table.Regions().size(), 2U);
  EXPECT_EQ(table.Regions().front().address, 100U);
}

TEST(RegionTable, FindsOnlyWhatLiesInsideOneRegion) {
  RegionTable table;
  ASSERT_TRUE(table.Add(At(100, 50)));
  ASSERT_TRUE(table.Add(At(150, 50)));
  EXPECT_TRUE(table.Find(100, 50));
  EXPECT_TRUE(table.Find(149, 1));
  EXPECT_FALSE(table.Find(149, 2)) << "crosses into the neighbour";
  EXPECT_FALSE(table.Find(99, 1));
  EXPECT_FALSE(table.Find(200, 0));
  EXPECT_FALSE(table.Find(120, ~std::uint64_t{0})) << "length wraps";
}

TEST(RegionTable, PeersPinOnlyWhatWasRegisteredForThem) {
  RegionTable table;
  ASSERT_TRUE(table.Add(At(100, 50, /*remote=*/false)));
  EXPECT_FALSE(table.Pin(100, 1));
  EXPECT_TRUE(table.Pin(100, 1, RegionTable::Access::kLocal));
}

TEST(RegionTable, RemoveOfAnUnknownAddressSaysSo) {
  RegionTable table;
  ASSERT_TRUE(table.Add(At(100, 50)));
  EXPECT_EQ(table.Remove(101, 0s).error().code, ErrorCode::kAddressNotRegistered);
  EXPECT_TRUE(table.Remove(100, 0s));
  EXPECT_EQ(table.Remove(100, 0s).error().code, ErrorCode::kAddressNotRegistered);
}

TEST(RegionTable, RemoveRefusesWhileAPinIsHeldAndSucceedsAfterwards) {
  RegionTable table;
  ASSERT_TRUE(table.Add(At(100, 50)));
  RegionPin pin = table.Pin(120, 8);
  ASSERT_TRUE(pin);
  EXPECT_EQ(table.Remove(100, 0s).error().code, ErrorCode::kTimeout);
  EXPECT_FALSE(table.Pin(120, 8)) << "a leaving region gives no new pins";
  EXPECT_FALSE(table.Find(120, 8));
  pin.Reset();
  EXPECT_EQ(table.Remove(100, 0s)->length_bytes, 50U);
}

TEST(RegionTable, RemoveWaitsForThePinOfAnotherThread) {
  RegionTable table;
  ASSERT_TRUE(table.Add(At(100, 50)));
  RegionPin pin = table.Pin(100, 50);
  std::atomic<bool> released = false;
  std::jthread remover([&] {
    EXPECT_TRUE(table.Remove(100, kHangLimit));
    EXPECT_TRUE(released.load());
  });
  EXPECT_TRUE(WaitUntil([&] { return !table.Find(100, 1); })) << "Remove has not begun";
  released = true;
  pin.Reset();
}

TEST(RegionTable, AThreadsCopyIsNotTakenForThatOfALaterTable) {
  for (int round = 0; round < 10; ++round) {
    RegionTable table;
    EXPECT_FALSE(table.Find(100, 1)) << round;
    ASSERT_TRUE(table.Add(At(100, 50)));
    EXPECT_TRUE(table.Find(100, 1));
  }
}

// Goal: the binary searches agree with a plain loop. Method: random adds, removes and questions.
TEST(RegionTable, AgreesWithANaiveListOverRandomOperations) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    std::mt19937 random(seed);
    RegionTable table;
    std::vector<Region> naive;
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t address = random() % 400;
      const std::uint64_t length = random() % 20;
      const auto overlaps = [&](const Region& r) {
        return length != 0 && r.address < address + length && address < r.address + r.length_bytes;
      };
      const auto holds = [&](const Region& r) {
        return address >= r.address && address < r.address + r.length_bytes &&
               address + length <= r.address + r.length_bytes;
      };
      EXPECT_EQ(table.Overlaps(address, length), std::ranges::any_of(naive, overlaps));
      EXPECT_EQ(table.Find(address, length).has_value(), std::ranges::any_of(naive, holds));
      EXPECT_EQ(static_cast<bool>(table.Pin(address, length)), std::ranges::any_of(naive, holds));
      if (random() % 3 == 0) {
        const auto begins = [&](const Region& r) { return r.address == address; };
        EXPECT_EQ(table.Remove(address, 0s).has_value(), std::erase_if(naive, begins) == 1);
      } else {
        const bool wanted = length != 0 && !std::ranges::any_of(naive, overlaps);
        EXPECT_EQ(table.Add(At(address, length)).has_value(), wanted);
        if (wanted) {
          naive.push_back(At(address, length));
        }
      }
    }
  }
}

// Goal: memory is never touched after Remove has returned. Method: the "memory" is a flag that
// servers write while they hold a pin and the owner checks after Remove.
TEST(RegionTable, NobodyHoldsAPinOnceRemoveHasReturned) {
  RegionTable table;
  std::atomic<int> inside = 0;
  std::atomic<bool> stop = false;
  std::vector<std::jthread> servers;
  servers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    servers.emplace_back([&] {
      while (!stop) {
        if (const RegionPin pin = table.Pin(100, 50)) {
          inside.fetch_add(1);
          std::this_thread::yield();
          inside.fetch_sub(1);
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (int round = 0; round < 300; ++round) {
    ASSERT_TRUE(table.Add(At(100, 50)));
    std::this_thread::yield();
    ASSERT_TRUE(table.Remove(100, kHangLimit));
    EXPECT_EQ(inside.load(), 0);
  }
  stop = true;
}

}  // namespace
}  // namespace mooncake::transfer
