// Whether this process can use a range of its own addresses: asked of the kernel, so that a wrong
// address is an error in words and not the end of the process.
//
// Thread-safety: any thread. What is mapped may change right after the answer.
// Cost:          reads /proc/self/maps up to the range, about a microsecond a mapping.
#pragma once

#include <cstdint>

#include "mooncake-common/src/base/result.h"

namespace mooncake {

enum class MemoryAccess : std::uint8_t { kRead, kWrite };  // Who can write can read too.

// Touches no page. Also without an error where /proc is not mounted: then nobody knows.
//
// Errors: kInvalidArgument for an empty range, one that wraps around, and one with bytes that are
// not mapped, or not for `access`; names the first such byte.
[[nodiscard]] Result<void> CheckMapped(const void* address, std::uint64_t length_bytes,
                                       MemoryAccess access);

}  // namespace mooncake
