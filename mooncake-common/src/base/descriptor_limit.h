// How many descriptors this process may have open at once. Every connection of a server is one,
// and the usual soft limit, 1024, is meant for programs that use select().
//
// Thread-safety: any thread; the limit is the whole process's. For programs at their start, and for
// engines, whose hosts know nothing of their many peers.
#pragma once

#include <cstdint>

#include "mooncake-common/src/base/result.h"

namespace mooncake {

// Raises the soft limit as far as the hard one, which needs no privilege, and returns it.
//
// Errors: kIo.
[[nodiscard]] Result<std::uint64_t> RaiseDescriptorLimit();

// The same for a server that wants to hold `connections` and some files; logs a warning that names
// limit, need and remedy when the hard limit is lower. A server with fewer descriptors still works:
// connections wait until others end.
void PrepareDescriptorsFor(std::uint64_t connections);

}  // namespace mooncake
