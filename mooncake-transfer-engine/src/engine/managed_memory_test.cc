#include "mooncake-transfer-engine/src/engine/managed_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>

#include "mooncake-common/src/base/mapped_memory.h"
#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::transfer {
namespace {

PageWarmer::Machine MachineWithPlenty() {
  PageWarmer::Machine machine = PageWarmer::ThisMachine();
  machine.available_share = [] { return 1.0; };
  return machine;
}

class ManagedMemoryTest : public testing::Test {
 protected:
  std::map<void*, MemoryRegistration> registered_;
  bool refuse_ = false;
  ErrorCode refuse_as_ = ErrorCode::kUnavailable;
  void* refused_ = nullptr;
  ManagedMemory memory_{{.add = [this](const MemoryRegistration& one) -> Result<void> {
                           if (refuse_) {
                             refused_ = one.address;
                             return Fail(refuse_as_, "refused on purpose");
                           }
                           registered_[one.address] = one;
                           return {};
                         },
                         .remove = [this](void* address) -> Result<void> {
                           registered_.erase(address);
                           return {};
                         }},
                        MachineWithPlenty()};
};

TEST_F(ManagedMemoryTest, CarvesSmallBlocksFromOneArenaMadeAtFirstUse) {
  EXPECT_TRUE(registered_.empty());
  auto* first = static_cast<char*>(memory_.Allocate(1, {}).value());
  auto* second = static_cast<char*>(memory_.Allocate(8192, {}).value());
  ASSERT_EQ(registered_.size(), 1U);
  EXPECT_EQ(registered_.begin()->second.length_bytes, ManagedMemory::kArenaBytes);
  EXPECT_EQ(std::abs(second - first), 8192);
  std::memset(first, 1, 8192);
  std::memset(second, 2, 8192);
  EXPECT_EQ(first[8191], 1);
}

TEST_F(ManagedMemoryTest, SharesPagesOfAFileSealedAgainstShrinking) {
  auto* block = static_cast<char*>(memory_.Allocate(100, {}).value());
  const MemoryRegistration& arena = registered_.begin()->second;
  ASSERT_TRUE(arena.shared);
  EXPECT_NE(::fcntl(arena.shared->fd, F_GET_SEALS) & F_SEAL_SHRINK, 0);
  *block = 77;
  char seen = 0;
  ASSERT_EQ(::pread(arena.shared->fd, &seen, 1, block - static_cast<char*>(arena.address)), 1);
  EXPECT_EQ(seen, 77);
}

TEST_F(ManagedMemoryTest, MakesThePagesOfAWarmFileAhead) {
  constexpr std::uint64_t kBytes = 1U << 20U;
  const auto made = [&](void* memory) {
    struct stat status{};
    EXPECT_EQ(::fstat(registered_.at(memory).shared->fd, &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  };
  void* cold = memory_.Allocate(kBytes, {.dedicated = true}).value();
  void* warm = memory_.Allocate(kBytes, {.dedicated = true, .warm = true}).value();
  ASSERT_TRUE(WaitUntil([&] { return made(warm) >= kBytes; }));
  EXPECT_EQ(made(cold), 0U);
  ASSERT_TRUE(memory_.Free(warm));
  // Freed while it is being warmed.
  ASSERT_TRUE(
      memory_.Free(memory_.Allocate(64 * kBytes, {.dedicated = true, .warm = true}).value()));
}

TEST_F(ManagedMemoryTest, GivesLargeAndDedicatedRequestsAFileOfTheirOwn) {
  void* large = memory_.Allocate(ManagedMemory::kLargest + 1, {}).value();
  EXPECT_EQ(registered_.at(large).length_bytes, ManagedMemory::kLargest + 4096);
  void* dedicated =
      memory_.Allocate(5000, {.location = "cpu:0", .remote_accessible = false, .dedicated = true})
          .value();
  EXPECT_EQ(registered_.at(dedicated).length_bytes, 8192U);
  EXPECT_FALSE(registered_.at(dedicated).remote_accessible);
  ASSERT_TRUE(memory_.Free(large));
  EXPECT_FALSE(registered_.contains(large));
  EXPECT_EQ(memory_.Free(large).error().code, ErrorCode::kAddressNotRegistered);
}

TEST_F(ManagedMemoryTest, KeepsADedicatedRangeMappedWhileSomebodyHoldsIt) {
  auto* const dedicated = static_cast<char*>(memory_.Allocate(5000, {.dedicated = true}).value());
  EXPECT_EQ(memory_.Hold(memory_.Allocate(100, {}).value()), nullptr);
  auto hold = memory_.Hold(dedicated);
  ASSERT_NE(hold, nullptr);
  dedicated[4999] = 77;
  ASSERT_TRUE(memory_.Free(dedicated));
  EXPECT_FALSE(registered_.contains(dedicated));
  EXPECT_EQ(memory_.Hold(dedicated), nullptr);
  EXPECT_EQ(dedicated[4999], 77);
  EXPECT_TRUE(CheckMapped(dedicated, 5000, MemoryAccess::kWrite));
  hold.reset();
  EXPECT_FALSE(CheckMapped(dedicated, 5000, MemoryAccess::kWrite));
}

TEST_F(ManagedMemoryTest, RefusesNothingAndWhatItDidNotGive) {
  EXPECT_EQ(memory_.Allocate(0, {}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(memory_.Allocate(UINT64_MAX, {}).error().code, ErrorCode::kInvalidArgument);
  int stranger = 0;
  EXPECT_EQ(memory_.Free(&stranger).error().code, ErrorCode::kAddressNotRegistered);
  refuse_ = true;
  EXPECT_EQ(memory_.Allocate(10, {}).error().code, ErrorCode::kUnavailable);
}

TEST_F(ManagedMemoryTest, KeepsWhatAPeerUsesAlreadyAlthoughItWasRefused) {
  refuse_ = true;
  refuse_as_ = ErrorCode::kBusy;
  EXPECT_EQ(memory_.Allocate(5000, {.dedicated = true}).error().code, ErrorCode::kBusy);
  EXPECT_TRUE(CheckMapped(refused_, 5000, MemoryAccess::kWrite));
}

TEST_F(ManagedMemoryTest, BlocksNeverOverlapOverRandomAllocations) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng random(seed);
    std::map<std::uint64_t, std::uint64_t> live;  // Begin to end.
    for (int step = 0; step < 2000; ++step) {
      if (!live.empty() && random.Chance(2, 5)) {
        auto victim = live.begin();
        std::advance(victim, random.Uniform(live.size()));
        ASSERT_TRUE(memory_.Free(reinterpret_cast<void*>(victim->first)));
        live.erase(victim);
        continue;
      }
      const std::uint64_t length = std::uint64_t{1} << random.Uniform(21);
      const auto begin = reinterpret_cast<std::uint64_t>(memory_.Allocate(length, {}).value());
      const auto next = live.lower_bound(begin);
      ASSERT_TRUE(next == live.end() || next->first >= begin + length);
      ASSERT_TRUE(next == live.begin() || std::prev(next)->second <= begin);
      live[begin] = begin + length;
    }
    for (const auto& [begin, end] : live) {
      ASSERT_TRUE(memory_.Free(reinterpret_cast<void*>(begin)));
    }
  }
}

}  // namespace
}  // namespace mooncake::transfer
