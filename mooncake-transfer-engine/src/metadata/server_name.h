// What the user called this host, turned into names that peers can dial.
//
// Thread-safety: pure functions, if ListInterfaces is. Nothing here asks a name server.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/local_address.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake::transfer {

struct HostChoice {
  std::string host;         // Stands in the segment's name; an IPv6 literal without brackets.
  std::string data_host;    // For tcp_data_host; empty = leave it out.
  std::string_view reason;  // For the log.
};

// ListInterfaceAddresses, or what stands for it in a test.
using ListInterfaces = std::function<Result<std::vector<InterfaceAddress>>()>;

// The host part of a name between peers. What the user named is taken as it is, a port in it
// dropped ("localhost:7777", "::1", "[::1]:0"). For nothing, and for a wildcard, an address of this
// host is chosen, and readers are left to use the host they dialled. Only then is the kernel asked
// for the interfaces: it takes longer over them than over all else of an engine's start.
//
// Errors: kInvalidArgument that quotes a name which is no host; what `list_interfaces` answers.
[[nodiscard]] Result<HostChoice> ChoosePeerToPeerHost(std::string_view local_server_name,
                                                      std::string_view bind_address,
                                                      bool prefer_ipv6,
                                                      const ListInterfaces& list_interfaces);

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
