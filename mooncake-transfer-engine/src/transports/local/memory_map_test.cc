#include "mooncake-transfer-engine/src/transports/local/memory_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace mooncake::transfer {
namespace {

constexpr std::string_view kMaps =
    "00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus-daemon\n"
    "7f0000000000-7f0000004000 rw-s 00002000 00:01 77 /memfd:x (deleted)\n"
    "7f0000004000-7f0000005000 r--s 00006000 00:01 77 /memfd:x (deleted)\n"
    "7f0000005000-7f0000006000 rw-s 00000000 00:01 77 /memfd:x (deleted)\n"
    "7f0000006000-7f0000007000 rw-s 00001000 00:01 78 /memfd:y (deleted)\n"
    "7f0000008000-7f0000009000 rw-p 00000000 00:00 0 \n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

TEST(MemoryMap, FindsFileAndOffsetOfARangeWithinOneMapping) {
  EXPECT_EQ(FindBacking(kMaps, 0x7f0000001010, 0x20),
            (FileBacking{.device_minor = 1, .inode = 77, .offset_bytes = 0x3010}));
}

TEST(MemoryMap, JoinsMappingsThatContinueEachOther) {
  EXPECT_EQ(FindBacking(kMaps, 0x7f0000000000, 0x5000),
            (FileBacking{.device_minor = 1, .inode = 77, .offset_bytes = 0x2000}));
}

TEST(MemoryMap, RefusesJumpsGapsOtherFilesAndPrivateMemory) {
  EXPECT_FALSE(FindBacking(kMaps, 0x7f0000004000, 0x2000)) << "offset jumps";
  EXPECT_FALSE(FindBacking(kMaps, 0x7f0000005000, 0x2000)) << "other file";
  EXPECT_FALSE(FindBacking(kMaps, 0x7f0000006000, 0x2000)) << "gap";
  EXPECT_FALSE(FindBacking(kMaps, 0x7f0000008000, 0x10)) << "anonymous";
  EXPECT_FALSE(FindBacking(kMaps, 0x400000, 0x10)) << "private";
  EXPECT_FALSE(FindBacking(kMaps, 0x7f0000004000, ~std::uint64_t{0})) << "wraps around";
  EXPECT_FALSE(FindBacking(kMaps, 0x7f0000004000, 0));
}

TEST(MemoryMap, SurvivesEveryTruncationAndFlippedByte) {
  for (std::size_t at = 0; at < kMaps.size(); ++at) {
    (void)FindBacking(kMaps.substr(0, at), 0x7f0000000000, 0x5000);
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped(kMaps);
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      (void)FindBacking(flipped, 0x7f0000000000, 0x5000);
    }
  }
}

TEST(MemoryMap, AgreesWithTheKernel) {
  const int fd = ::memfd_create("memory_map_test", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, 0x8000), 0);
  void* const base = ::mmap(nullptr, 0x4000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0x2000);
  ASSERT_NE(base, MAP_FAILED);
  struct stat status{};
  ASSERT_EQ(::fstat(fd, &status), 0);
  std::stringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  EXPECT_EQ(FindBacking(maps.str(), reinterpret_cast<std::uintptr_t>(base) + 0x1001, 0x2000),
            (FileBacking{.device_major = major(status.st_dev),
                         .device_minor = minor(status.st_dev),
                         .inode = status.st_ino,
                         .offset_bytes = 0x3001}));
  ::munmap(base, 0x4000);
  ::close(fd);
}

}  // namespace
}  // namespace mooncake::transfer
