// "host:port" as people and peers write it, with IPv6 literals bare, bracketed and scoped.
//
// Thread-safety: pure functions and values. Nothing here asks a name server.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/result.h"

namespace mooncake {

struct HostPort {
  std::string host;                   // Never in brackets. A scope stays: "fe80::1%eth0".
  std::optional<std::uint16_t> port;  // Absent when the text had none; "host:0" is port 0.

  // "host", "host:port"; an IPv6 literal always in brackets: "[::1]", "[::1]:15376".
  [[nodiscard]] std::string ToString() const;
  friend auto operator<=>(const HostPort&, const HostPort&) = default;
};

// Reads "host", "host:port", "1.2.3.4:5", "[::1]", "[::1]:0", "[fe80::1%eth0]:7", and the bare
// "::1", in which no colon begins a port.
//
// Errors: kInvalidArgument that quotes the text and says what is wrong: empty host or port, port
// above 65535, a bracket without its pair, several colons that are no IPv6 address, a character
// that no host name has.
[[nodiscard]] Result<HostPort> ParseHostPort(std::string_view text);

// "10.0.0.1" and "15000" -> "10.0.0.1:15000", with brackets where IPv6 needs them.
[[nodiscard]] std::string FormatHostPort(std::string_view host, std::uint16_t port);

[[nodiscard]] bool IsIpv4Literal(std::string_view host);
[[nodiscard]] bool IsIpv6Literal(std::string_view host);  // Without brackets; a scope is allowed.

// 127.0.0.0/8, ::1, the IPv4 range mapped into IPv6, and the name "localhost".
[[nodiscard]] bool IsLoopbackHost(std::string_view host);

// 0.0.0.0 and :: mean "every interface" to a listener and nothing to a peer.
[[nodiscard]] bool IsWildcardHost(std::string_view host);

}  // namespace mooncake
