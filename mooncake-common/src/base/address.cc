#include "mooncake-common/src/base/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>

#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

constexpr std::size_t kNameMaxBytes = 253;  // RFC 1035.

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsScope(std::string_view scope) {
  return !scope.empty() && scope.size() < IF_NAMESIZE &&
         std::ranges::all_of(
             scope,
             [](char c) {
               return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '@';
             });
}

std::optional<in6_addr> ToIpv6(std::string_view host) {
  const std::size_t percent = host.find('%');
  if (percent != std::string_view::npos && !IsScope(host.substr(percent + 1))) {
    return std::nullopt;
  }
  const std::string digits(host.substr(0, percent));
  in6_addr address{};
  // A NUL byte would end the text early for inet_pton.
  if (digits.find('\0') != std::string::npos ||
      inet_pton(AF_INET6, digits.c_str(), &address) != 1) {
    return std::nullopt;
  }
  return address;
}

// Four numbers with dots are meant as an address, even when they are none.
bool LooksLikeIpv4(std::string_view host) {
  return std::ranges::count(host, '.') == 3 &&
         std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

bool IsName(std::string_view host) {
  return !host.empty() && host.size() <= kNameMaxBytes && std::ranges::all_of(host, [](char c) {
    return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
}

std::unexpected<Error> Malformed(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("parse address {}: {}; write host, host:port, [ipv6]:port or ipv6",
                          Quote(text), why));
}

}  // namespace

std::string HostPort::ToString() const {
  if (port) {
    return FormatHostPort(host, *port);
  }
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

Result<HostPort> ParseHostPort(std::string_view text) {
  HostPort parsed;
  std::string_view rest;  // What follows the host: empty, or ':' and the port.
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) {
      return Malformed(text, "'[' without ']'");
    }
    parsed.host = text.substr(1, close - 1);
    if (!ToIpv6(parsed.host)) {
      return Malformed(text, "what is in the brackets is no IPv6 address");
    }
    rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') {
      return Malformed(text, "only :port may follow ']'");
    }
  } else if (ToIpv6(text)) {
    parsed.host = text;
  } else {
    const std::size_t colon = text.find(':');
    parsed.host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
    if (rest.find(':', 1) != std::string_view::npos) {
      return Malformed(text, "several colons, and no IPv6 address");
    }
    if (parsed.host.empty()) {
      return Malformed(text, "no host");
    }
    if (!IsName(parsed.host)) {
      return Malformed(text, "the host has characters that no name has, or too many");
    }
    if (LooksLikeIpv4(parsed.host) && !IsIpv4Literal(parsed.host)) {
      return Malformed(text, "four numbers that are no IPv4 address");
    }
  }
  if (!rest.empty()) {
    parsed.port = ParseInteger<std::uint16_t>(rest.substr(1));
    if (!parsed.port) {
      return Malformed(text, "the port is no number from 0 to 65535");
    }
  }
  return parsed;
}

std::string FormatHostPort(std::string_view host, std::uint16_t port) {
  return host.find(':') == std::string_view::npos ? fmt::format("{}:{}", host, port)
                                                  : fmt::format("[{}]:{}", host, port);
}

bool IsIpv4Literal(std::string_view host) {
  in_addr address{};
  return host.find('\0') == std::string_view::npos &&
         inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
}

bool IsIpv6Literal(std::string_view host) { return ToIpv6(host).has_value(); }

bool IsLoopbackHost(std::string_view host) {
  if (EqualsIgnoreCase(host, "localhost")) {
    return true;
  }
  if (IsIpv4Literal(host)) {
    return host.starts_with("127.");
  }
  const auto address = ToIpv6(host);
  return address && (IN6_IS_ADDR_LOOPBACK(&*address) ||
                     (IN6_IS_ADDR_V4MAPPED(&*address) && address->s6_addr[12] == 127));
}

bool IsWildcardHost(std::string_view host) {
  if (IsIpv4Literal(host)) {
    return host == "0.0.0.0";
  }
  const auto address = ToIpv6(host);
  return address && IN6_IS_ADDR_UNSPECIFIED(&*address);
}

}  // namespace mooncake
