// What the user called this host, turned into names that peers can dial.
//
// Thread-safety: pure functions. Nothing here asks a name server.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/local_address.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake::transfer {

struct HostChoice {
  std::string host;         // Stands in the segment's name; an IPv6 literal without brackets.
  std::string data_host;    // For tcp_data_host; empty = leave it out.
  std::string_view reason;  // For the log.
};

// The host part of a name between peers. What the user named is taken as it is, a port in it
// dropped ("localhost:7777", "::1", "[::1]:0"). For nothing, and for a wildcard, an address of this
// host is chosen, and readers are left to use the host they dialled.
//
// Errors: kInvalidArgument that quotes a name which is no host.
[[nodiscard]] Result<HostChoice> ChoosePeerToPeerHost(std::string_view local_server_name,
                                                      std::string_view bind_address,
                                                      bool prefer_ipv6,
                                                      std::span<const InterfaceAddress> interfaces);

// The address to publish in a central store, where the name is only a label: the address that the
// label holds if this host has it and others can reach it; else `bind_address`; else `routed` (the
// address that packets to the store carry); else the first running interface; else loopback.
[[nodiscard]] HostChoice ChoosePublishedHost(std::string_view local_server_name,
                                             std::string_view bind_address, std::string_view routed,
                                             bool prefer_ipv6,
                                             std::span<const InterfaceAddress> interfaces);

// Where a peer of that name is dialled. Errors: kInvalidArgument that quotes the name.
[[nodiscard]] Result<HostPort> ParsePeerName(std::string_view name, std::uint16_t default_port);

// A name without the one leading '/' that callers may put before it.
[[nodiscard]] std::string_view WithoutLeadingSlash(std::string_view name);

}  // namespace mooncake::transfer
