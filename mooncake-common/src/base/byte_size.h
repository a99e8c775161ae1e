// Sizes as people write them: "16MB", "16 MB", "1.5gb", "4096". Every unit counts in steps of 1024.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/result.h"

namespace mooncake {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// A decimal number, perhaps with a fraction, then perhaps one of b, k, kb, m, mb, g, gb, t, tb in
// any case, blanks between them allowed. A fraction of a byte is dropped.
//
// Errors: kInvalidArgument quoting the text: no number, another unit, negative, over 2^64 - 1.
[[nodiscard]] Result<std::uint64_t> ParseByteSize(std::string_view text);

// For people: "512 B", "1.5 KiB", "3.1 GiB".
[[nodiscard]] std::string FormatByteSize(std::uint64_t bytes);

}  // namespace mooncake
