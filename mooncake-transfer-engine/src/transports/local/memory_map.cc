#include "mooncake-transfer-engine/src/transports/local/memory_map.h"

#include <charconv>
#include <system_error>

namespace mooncake::transfer {
namespace {

struct Line {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool shared = false;
  FileBacking backing;  // Its offset is that of `begin`.
};

// Takes one number and the character after it from the front of `text`.
template <typename T>
bool TakeNumber(std::string_view& text, int base, char after, T& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  const auto used = static_cast<std::size_t>(stop - text.data());
  if (error != std::errc{} || used == text.size() || text[used] != after) {
    return false;
  }
  text.remove_prefix(used + 1);
  return true;
}

// "7f1c00000000-7f1c00001000 rw-s 00002000 00:01 1234 /memfd:x (deleted)"
std::optional<Line> ParseLine(std::string_view text) {
  Line line;
  if (!TakeNumber(text, 16, '-', line.begin) || !TakeNumber(text, 16, ' ', line.end) ||
      text.size() < 5 || text[4] != ' ') {
    return std::nullopt;
  }
  line.shared = text[3] == 's';
  text.remove_prefix(5);
  if (!TakeNumber(text, 16, ' ', line.backing.offset_bytes) ||
      !TakeNumber(text, 16, ':', line.backing.device_major) ||
      !TakeNumber(text, 16, ' ', line.backing.device_minor) ||
      !TakeNumber(text, 10, ' ', line.backing.inode) || line.end <= line.begin) {
    return std::nullopt;
  }
  return line;
}

}  // namespace

std::optional<FileBacking> FindBacking(std::string_view maps, std::uint64_t address,
                                       std::uint64_t length_bytes) {
  if (length_bytes == 0 || address + length_bytes < address) {
    return std::nullopt;
  }
  const std::uint64_t end = address + length_bytes;
  std::optional<FileBacking> found;
  std::uint64_t covered_to = address;
  while (!maps.empty() && covered_to < end) {
    const std::size_t newline = maps.find('\n');
    const std::optional<Line> line = ParseLine(maps.substr(0, newline));
    maps.remove_prefix(newline == std::string_view::npos ? maps.size() : newline + 1);
    if (!line || line->end <= covered_to) {
      continue;
    }
    if (line->begin > covered_to || !line->shared || line->backing.inode == 0) {
      return std::nullopt;  // Lines are in address order: a gap stays a gap.
    }
    FileBacking here = line->backing;
    here.offset_bytes += covered_to - line->begin;
    if (found) {
      FileBacking continued = *found;
      continued.offset_bytes += covered_to - address;
      if (here != continued) {
        return std::nullopt;
      }
    } else {
      found = here;
    }
    covered_to = line->end;
  }
  return covered_to >= end ? found : std::nullopt;
}

}  // namespace mooncake::transfer
