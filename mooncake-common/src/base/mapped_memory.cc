#include "mooncake-common/src/base/mapped_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace mooncake {
namespace {

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
};

// Of a line "7f01c000-7f01d000 rw-p 00000000 00:00 0   [heap]".
std::optional<Mapping> ParseLine(std::string_view line) {
  Mapping mapping;
  const char* const last = line.data() + line.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its end is given.
  const auto begin = std::from_chars(line.data(), last, mapping.begin, 16);
  if (begin.ec != std::errc{} || begin.ptr == last) {
    return std::nullopt;
  }
  const auto end = std::from_chars(begin.ptr + 1, last, mapping.end, 16);
  if (end.ec != std::errc{} || last - end.ptr < 3) {
    return std::nullopt;
  }
  mapping.readable = end.ptr[1] == 'r';
  mapping.writable = end.ptr[2] == 'w';
  return mapping;
}

// The lines of /proc/self/maps, in the order of addresses.
class MapsReader {
 public:
  MapsReader() : fd_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~MapsReader() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

  // Nothing at the end.
  [[nodiscard]] std::optional<Mapping> Next() {
    for (;;) {
      const std::size_t newline = text_.find('\n', at_);
      if (newline != std::string::npos) {
        const auto line = std::string_view(text_).substr(at_, newline - at_);
        at_ = newline + 1;
        return ParseLine(line);
      }
      text_.erase(0, at_);
      at_ = 0;
      const ssize_t got = ::read(fd_, chunk_.data(), chunk_.size());
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        return std::nullopt;
      }
      text_.append(chunk_.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  const int fd_;
  std::string text_;
  std::size_t at_ = 0;
  std::array<char, 16384> chunk_;
};

std::unexpected<Error> Refuse(std::uint64_t address, std::uint64_t length_bytes,
                              std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("memory at {:#x} of {} bytes: {}", address, length_bytes, why));
}

}  // namespace

Result<void> CheckMapped(const void* address, std::uint64_t length_bytes, MemoryAccess access) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  const std::uint64_t end = begin + length_bytes;
  if (length_bytes == 0) {
    return Refuse(begin, length_bytes, "it is empty; give its length");
  }
  if (end < begin) {
    return Refuse(begin, length_bytes, "it ends beyond the last address; correct the length");
  }
  MapsReader maps;
  if (!maps.is_open()) {
    return {};
  }
  std::uint64_t good = begin;  // Everything before is mapped as it should be.
  while (const auto mapping = maps.Next()) {
    if (mapping->end <= good) {
      continue;
    }
    if (mapping->begin > good) {
      break;
    }
    if (!mapping->readable) {
      return Refuse(begin, length_bytes, fmt::format("byte {:#x} may not be read", good));
    }
    if (access == MemoryAccess::kWrite && !mapping->writable) {
      return Refuse(begin, length_bytes,
                    fmt::format("byte {:#x} is mapped for reading only", good));
    }
    good = mapping->end;
    if (good >= end) {
      return {};
    }
  }
  return Refuse(begin, length_bytes,
                fmt::format("byte {:#x} is not mapped in this process; give an address of memory "
                            "that was allocated and not freed",
                            good));
}

}  // namespace mooncake
