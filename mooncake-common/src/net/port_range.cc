#include "mooncake-common/src/net/port_range.h"

#include <fmt/format.h>

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace mooncake {

Result<BoundListener> ListenInRange(const std::string& host, PortRange range, Rng& rng) {
  if (range.min > range.max) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("choose a port from {} to {}: the range is empty; correct {}",
                            range.min, range.max, range.set_by));
  }
  std::vector<std::uint16_t> ports(static_cast<std::size_t>(range.max) - range.min + 1);
  std::iota(ports.begin(), ports.end(), range.min);
  for (std::size_t left = ports.size(); left > 0; --left) {
    // Draws without putting back: what was tried moves behind the end of what is left.
    std::swap(ports[rng.Uniform(left)], ports[left - 1]);
    auto fd = SocketListen(host, ports[left - 1]);
    if (fd) {
      MC_TRY_ASSIGN(const std::uint16_t port, LocalPort(fd->get()));
      return BoundListener{.fd = std::move(*fd), .port = port};
    }
    // A port below 1024, or one that a policy reserves, is as good as taken.
    if (fd.error().code != ErrorCode::kAlreadyExists &&
        fd.error().code != ErrorCode::kPermissionDenied) {
      return std::unexpected(std::move(fd).error());
    }
  }
  return Fail(ErrorCode::kExhausted,
              fmt::format("choose a port from {} to {}: all {} are in use or not permitted; widen "
                          "the range by {}",
                          range.min, range.max, ports.size(), range.set_by));
}

}  // namespace mooncake
