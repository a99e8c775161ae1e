// Remembers why attempts failed, in little memory: thousands of slices that fail for the same
// reasons share one chain of lines.
//
// Thread-safety: none; the batch's lock guards it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/result.h"

namespace mooncake::transfer {

class ReasonBook {
 public:
  static constexpr std::size_t kMaxLines = 256;

  // A chain: `before` (0 = none) and one more failed attempt. When the book is full, `before`
  // itself, or the latest line where there was none.
  [[nodiscard]] std::uint32_t Add(std::uint32_t before, std::string_view path, const Error& why);

  // "via tcp: UNAVAILABLE: ...; via local: ...", oldest first. Empty for 0.
  [[nodiscard]] std::string Text(std::uint32_t chain) const;
  // Of the last line; kInternal for 0.
  [[nodiscard]] ErrorCode Code(std::uint32_t chain) const;
  void Clear() { lines_.clear(); }

 private:
  struct Line {
    std::uint32_t before;
    ErrorCode code;
    std::string text;
  };
  std::vector<Line> lines_;
};

}  // namespace mooncake::transfer
