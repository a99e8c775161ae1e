// Names to addresses, without waiting longer than told, or without waiting at all.
//
// A number costs no system call. A name is looked up by a thread of its own, because the C
// library's lookup cannot be given a deadline or be ended: a late one is left behind, and ends by
// the resolver's own timeouts. At most 64 are under way in the process.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {

using Addresses = std::vector<SocketAddress>;  // In the order to try them.

// Finds out; may take its time. ResolveAddresses() is one.
using NameLookup = std::function<Result<Addresses>(const std::string& host, std::uint16_t port)>;

// All addresses of `host` (a name or a number), in the order to try them; never empty.
//
// Errors: kDns (unknown name, name server unreachable), kTimeout, kExhausted.
[[nodiscard]] Result<Addresses> ResolveAll(const std::string& host, std::uint16_t port,
                                           Instant deadline, NameLookup lookup = ResolveAddresses);

// The same in the background: `done` is called once, on the lookup's thread, or within the call
// with kExhausted.
void ResolveLater(NameLookup lookup, const std::string& host, std::uint16_t port,
                  std::move_only_function<void(Result<Addresses>)> done);

}  // namespace mooncake
