#include "mooncake-common/src/base/mapped_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace mooncake {
namespace {

using testing::HasSubstr;

constexpr std::size_t kPage = 4096;

// Pages of our own, in the middle of which others do not map anything.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : length_(count * kPage),
        address_(static_cast<std::byte*>(::mmap(nullptr, length_, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { ::munmap(address_, length_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] std::byte* at(std::size_t page) const { return address_ + page * kPage; }
  void Protect(std::size_t page, int how) const { ASSERT_EQ(::mprotect(at(page), kPage, how), 0); }

 private:
  const std::size_t length_;
  std::byte* const address_;
};

std::string Refusal(const void* address, std::uint64_t length_bytes, MemoryAccess access) {
  const auto checked = CheckMapped(address, length_bytes, access);
  EXPECT_FALSE(checked);
  return checked ? "" : checked.error().message;
}

TEST(CheckMapped, TakesWhatTheProcessUses) {
  const int local = 0;
  const auto heap = std::make_unique<std::vector<std::byte>>(1 << 20);
  EXPECT_TRUE(CheckMapped(&local, sizeof(local), MemoryAccess::kWrite));
  EXPECT_TRUE(CheckMapped(heap->data(), heap->size(), MemoryAccess::kWrite));
}

TEST(CheckMapped, FollowsARangeThroughMappingsOfDifferentKinds) {
  const Pages pages(5);
  pages.Protect(2, PROT_READ);
  EXPECT_TRUE(CheckMapped(pages.at(0) + 7, 5 * kPage - 7, MemoryAccess::kRead));
  EXPECT_TRUE(CheckMapped(pages.at(0), 2 * kPage, MemoryAccess::kWrite));
  EXPECT_THAT(Refusal(pages.at(0), 2 * kPage + 1, MemoryAccess::kWrite),
              HasSubstr(fmt::format("byte {} is mapped for reading only",
                                    static_cast<void*>(pages.at(2)))));
  pages.Protect(2, PROT_NONE);
  EXPECT_THAT(Refusal(pages.at(1), 2 * kPage, MemoryAccess::kRead), HasSubstr("may not be read"));
}

TEST(CheckMapped, NamesTheFirstByteOfAHole) {
  const Pages pages(5);
  ASSERT_EQ(::munmap(pages.at(2), kPage), 0);
  EXPECT_TRUE(CheckMapped(pages.at(0), 2 * kPage, MemoryAccess::kRead));
  EXPECT_THAT(Refusal(pages.at(0), 5 * kPage, MemoryAccess::kRead),
              HasSubstr(fmt::format("byte {} is not mapped", static_cast<void*>(pages.at(2)))));
}

TEST(CheckMapped, RefusesRangesThatAreNone) {
  const int local = 0;
  EXPECT_THAT(Refusal(&local, 0, MemoryAccess::kRead), HasSubstr("empty"));
  EXPECT_THAT(Refusal(&local, UINT64_MAX, MemoryAccess::kRead), HasSubstr("beyond"));
  EXPECT_THAT(Refusal(nullptr, 8, MemoryAccess::kRead), HasSubstr("not mapped"));
}

}  // namespace
}  // namespace mooncake
