#include "mooncake-common/src/base/sealed_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace mooncake {
namespace {

TEST(SealedMemory, IsSharedWithWhoMapsItsFileAndKeepsItsSize) {
  constexpr std::uint64_t kBytes = 8192;
  const auto memory = SealedMemory::Create("sealed_memory_test", kBytes);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ((*memory)->address()[kBytes - 1], std::byte{0});
  void* const seen = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, (*memory)->fd(), 0);
  ASSERT_NE(seen, MAP_FAILED);
  (*memory)->address()[5] = std::byte{7};
  EXPECT_EQ(static_cast<const std::byte*>(seen)[5], std::byte{7});
  EXPECT_NE(::ftruncate((*memory)->fd(), 4096), 0);
  EXPECT_NE(::ftruncate((*memory)->fd(), 16384), 0);
  ::munmap(seen, kBytes);
}

TEST(SealedMemory, TellsTheStepAndTheSizeThatFailed) {
  const auto memory = SealedMemory::Create("sealed_memory_test", std::uint64_t{1} << 60U);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(memory.error().message, testing::HasSubstr("of 1152921504606846976 bytes"));
}

}  // namespace
}  // namespace mooncake
