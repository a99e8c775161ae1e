// Finds in the text of /proc/<pid>/maps which file backs a range of memory.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mooncake::transfer {

struct FileBacking {
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t offset_bytes = 0;  // In the file, of the range's first byte.

  friend bool operator==(const FileBacking&, const FileBacking&) = default;
};

// The file behind [address, address + length_bytes), or nothing unless the whole range is mapped,
// shared, from one file, without a jump of offset (it may consist of several mappings). Lines that
// do not parse are passed over.
[[nodiscard]] std::optional<FileBacking> FindBacking(std::string_view maps, std::uint64_t address,
                                                     std::uint64_t length_bytes);

}  // namespace mooncake::transfer
