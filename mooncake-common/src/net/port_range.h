// Takes a free port out of a configured range and keeps it: bound first, published afterwards, so
// that no two processes ever announce the same one.
//
// Thread-safety: free functions; an Rng is for one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {

// Both ends included. Defaults are those of MC_MIN_RPC_PORT and MC_MAX_RPC_PORT. {0, 0} lets the
// kernel choose.
struct PortRange {
  std::uint16_t min = 15000;
  std::uint16_t max = 17000;
  std::string_view set_by = "MC_MIN_RPC_PORT and MC_MAX_RPC_PORT";  // For errors: what to change.
};

struct BoundListener {
  UniqueFd fd;  // Listening, non-blocking.
  std::uint16_t port = 0;
};

// Tries every port of the range once, in random order, on `host` (empty = all addresses of both
// families, see SocketListen).
//
// Errors: kExhausted when all are taken; names the range and the remedy. kInvalidArgument when
// min > max. Else what the first failure other than a taken port says.
[[nodiscard]] Result<BoundListener> ListenInRange(const std::string& host, PortRange range,
                                                  Rng& rng);

}  // namespace mooncake
