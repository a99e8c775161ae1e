// Names to addresses, without waiting longer than told.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {

// All addresses of `host` (a name or a number, IPv6 without brackets), in the order to try them;
// never empty. A number costs no system call. A name is looked up by a thread of its own, because
// the C library's lookup cannot be given a deadline or be ended: a late one is left behind, and
// ends by the resolver's own timeouts.
//
// Errors: kDns (unknown name, name server unreachable), kTimeout, kExhausted when 64 lookups are
// under way in the process.
[[nodiscard]] Result<std::vector<SocketAddress>> ResolveAll(const std::string& host,
                                                            std::uint16_t port, Instant deadline);

}  // namespace mooncake
