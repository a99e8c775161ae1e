// Which of this machine's addresses peers should be told.
//
// Thread-safety: any thread. Reads interface tables and routes; sends nothing, asks no name server.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/result.h"

namespace mooncake {

struct InterfaceAddress {
  std::string interface;
  std::string host;  // IP literal; link-local IPv6 with its scope.
  bool is_ipv6 = false;
  bool is_loopback = false;
  bool is_running = false;  // UP and RUNNING.
};

// In the kernel's order; IPv4 and IPv6 only.
//
// Errors: kIo.
[[nodiscard]] Result<std::vector<InterfaceAddress>> ListInterfaceAddresses();

// The source address that packets to `peer` would carry. `peer` is an IP literal: resolve names
// first.
//
// Errors: kInvalidArgument if it is no literal; kUnavailable if there is no route.
[[nodiscard]] Result<std::string> AddressThatRoutesTo(std::string_view peer);

struct AdvertiseChoice {
  std::string user_named;    // What the user gave as this host; may be a name. Empty = nothing.
  std::string bind_address;  // MC_TCP_BIND_ADDRESS. Empty = unset.
  std::string routed;        // AddressThatRoutesTo(master or peer). Empty = unknown.
  bool prefer_ipv6 = false;  // MC_USE_IPV6.
};

struct AdvertisedAddress {
  std::string host;
  std::string_view reason;  // For the log: why this one.
};

// The first of: what the user named, the bind address, the address that routes to the peer, the
// first running interface beyond loopback (preferred family first, link-local IPv6 last), loopback.
// A wildcard tells a peer nothing and is passed over.
[[nodiscard]] AdvertisedAddress ChooseAdvertisedAddress(
    const AdvertiseChoice& choice, std::span<const InterfaceAddress> interfaces);

}  // namespace mooncake
