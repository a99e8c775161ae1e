#include "mooncake-transfer-engine/src/metadata/server_name.h"

#include <algorithm>
#include <utility>

namespace mooncake::transfer {

Result<HostChoice> ChoosePeerToPeerHost(std::string_view local_server_name,
                                        std::string_view bind_address, bool prefer_ipv6,
                                        const ListInterfaces& list_interfaces) {
  if (!local_server_name.empty()) {
    MC_TRY_ASSIGN(HostPort named, ParseHostPort(local_server_name));
    if (!IsWildcardHost(named.host)) {
      return HostChoice{.host = named.host, .data_host = named.host, .reason = "named by the user"};
    }
  }
  MC_TRY_ASSIGN(const std::vector<InterfaceAddress> interfaces, list_interfaces());
  const AdvertisedAddress chosen = ChooseAdvertisedAddress(
      {.bind_address = std::string(bind_address), .prefer_ipv6 = prefer_ipv6}, interfaces);
  return HostChoice{.host = chosen.host, .data_host = {}, .reason = chosen.reason};
}

HostChoice ChoosePublishedHost(std::string_view local_server_name, std::string_view bind_address,
                               std::string_view routed, bool prefer_ipv6,
                               std::span<const InterfaceAddress> interfaces) {
  AdvertiseChoice choice{.bind_address = std::string(bind_address), .prefer_ipv6 = prefer_ipv6};
  // Most labels are no addresses, and many are loopback ones that were never meant for peers.
  const auto named = ParseHostPort(local_server_name);
  if (named && !IsLoopbackHost(named->host) &&
      std::ranges::any_of(interfaces, [&](const InterfaceAddress& address) {
        return address.host == named->host;
      })) {
    choice.user_named = named->host;
  }
  if (!IsLoopbackHost(routed)) {
    choice.routed = routed;
  }
  AdvertisedAddress chosen = ChooseAdvertisedAddress(choice, interfaces);
  return {.host = chosen.host, .data_host = chosen.host, .reason = chosen.reason};
}

Result<HostPort> ParsePeerName(std::string_view name, std::uint16_t default_port) {
  MC_TRY_ASSIGN(HostPort peer, ParseHostPort(WithoutLeadingSlash(name)));
  if (!peer.port) {
    peer.port = default_port;
  }
  return peer;
}

std::string_view WithoutLeadingSlash(std::string_view name) {
  return name.starts_with('/') ? name.substr(1) : name;
}

}  // namespace mooncake::transfer
