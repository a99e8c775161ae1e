#include "mooncake-store/src/client/store_name.h"

#include <utility>

#include "mooncake-common/src/base/address.h"

namespace mooncake::store {

Result<StoreName> StoreName::Claim(const std::string& local_hostname, PortRange ports, Rng& rng) {
  MC_TRY_ASSIGN(const HostPort given, ParseHostPort(local_hostname));
  // Bound on all addresses: the name must be unique on this host, however its addresses are
  // spelled.
  if (given.port && *given.port != 0) {
    auto held = SocketListen("", *given.port);
    if (!held) {
      return Fail(held.error().code, "claim the name '" + local_hostname +
                                         "': " + held.error().message +
                                         "; close the client that has it, or leave the port out");
    }
    return StoreName{.text = given.ToString(), .host = given.host, .held = *std::move(held)};
  }
  MC_TRY_ASSIGN(BoundListener bound, ListenInRange("", ports, rng));
  return StoreName{.text = FormatHostPort(given.host, bound.port),
                   .host = given.host,
                   .held = std::move(bound.fd)};
}

Result<StoreName> StoreName::OnEngine(const std::string& local_hostname,
                                      std::uint16_t engine_port) {
  MC_TRY_ASSIGN(HostPort name, ParseHostPort(local_hostname));
  if (name.port.value_or(0) == 0) {
    name.port = engine_port;
  }
  return StoreName{.text = name.ToString(), .host = name.host, .held = {}};
}

}  // namespace mooncake::store
