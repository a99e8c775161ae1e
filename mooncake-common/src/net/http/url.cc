#include "mooncake-common/src/net/http/url.h"

#include <fmt/format.h>

#include <algorithm>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;
constexpr std::size_t kMaxHostBytes = 255;

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsUnreserved(char c) {
  return IsAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

bool IsVisible(char c) { return c > ' ' && c < '\x7f'; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::unexpected<Error> BadUrl(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("URL {}: {}", Quote(text), why));
}

// Reads "[::1]", with a zone as "[fe80::1%25eth0]" (RFC 6874) or, as people write it, "%eth0".
Result<std::string> ParseIpv6Host(std::string_view text, std::string_view inside) {
  std::string host = ToLowerAscii(inside.substr(0, inside.find('%')));
  if (inside.size() > host.size()) {
    std::string_view zone = inside.substr(host.size() + 1);
    if (zone.starts_with("25") && zone.size() > 2) {
      zone.remove_prefix(2);
    }
    if (zone.empty() || !std::ranges::all_of(zone, IsUnreserved)) {
      return BadUrl(text, "the zone of the IPv6 address is not a name of an interface");
    }
    host += '%';
    host += zone;
  }
  if (host.size() > kMaxHostBytes || !IsIpv6Literal(host)) {
    return BadUrl(text, "what stands in brackets is not an IPv6 address");
  }
  return host;
}

Result<std::uint16_t> ParsePort(std::string_view text, std::string_view digits) {
  const std::optional<std::uint16_t> port = ParseInteger<std::uint16_t>(digits);
  if (!port || *port == 0) {
    return BadUrl(text, "the port is not a number from 1 to 65535");
  }
  return *port;
}

}  // namespace

Result<Url> Url::Parse(std::string_view text) {
  Url url;
  std::string_view rest = text;
  const std::size_t scheme_end = rest.find("://");
  const std::string scheme = ToLowerAscii(rest.substr(0, std::min(scheme_end, rest.size())));
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    // Without a scheme we cannot tell where a password would stand, so nothing is repeated then.
    return Fail(ErrorCode::kInvalidArgument,
                "the URL does not start with http:// or https://; write it as "
                "http://host:port/path");
  }
  url.tls = scheme == "https";
  rest.remove_prefix(scheme_end + 3);

  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  rest.remove_prefix(authority.size());
  if (authority.contains('@')) {
    return Fail(ErrorCode::kInvalidArgument,
                "the URL contains a user name or password; pass credentials as a header instead");
  }

  std::string_view port_text;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) {
      return BadUrl(text, "']' is missing after the IPv6 address");
    }
    MC_TRY_ASSIGN(url.host, ParseIpv6Host(text, authority.substr(1, close - 1)));
    const std::string_view after = authority.substr(close + 1);
    has_port = after.starts_with(':');
    port_text = has_port ? after.substr(1) : "";
    if (!after.empty() && !has_port) {
      return BadUrl(text, "only ':port' may follow ']'");
    }
  } else {
    const std::size_t colon = authority.find(':');
    has_port = colon != std::string_view::npos;
    port_text = has_port ? authority.substr(colon + 1) : "";
    if (port_text.contains(':')) {
      return BadUrl(text, "write an IPv6 address in brackets: http://[::1]:8080/");
    }
    url.host = ToLowerAscii(authority.substr(0, colon));
    if (url.host.empty() || url.host.size() > kMaxHostBytes) {
      return BadUrl(text, "the host is missing or too long");
    }
    if (!std::ranges::all_of(url.host, [](char c) { return IsUnreserved(c) && c != '~'; })) {
      return BadUrl(text, "the host contains a character that no host name has");
    }
  }
  url.port = url.tls ? kHttpsPort : kHttpPort;
  if (has_port) {
    MC_TRY_ASSIGN(url.port, ParsePort(text, port_text));
  }

  const std::string_view target = rest.substr(0, rest.find('#'));
  if (!std::ranges::all_of(target, IsVisible)) {
    return BadUrl(text, "percent-encode spaces, control characters and what is not ASCII");
  }
  url.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
  return url;
}

std::string Url::Authority() const {
  const std::string name =
      host.contains(':') ? fmt::format("[{}]", host.substr(0, host.find('%'))) : host;
  return port == (tls ? kHttpsPort : kHttpPort) ? name : fmt::format("{}:{}", name, port);
}

std::string Url::ToString() const {
  std::string name = host;
  if (host.contains(':')) {
    const std::size_t zone = host.find('%');
    name = zone == std::string::npos
               ? fmt::format("[{}]", host)
               : fmt::format("[{}%25{}]", host.substr(0, zone), host.substr(zone + 1));
  }
  return fmt::format("{}://{}:{}{}", tls ? "https" : "http", name, port, target);
}

Result<RequestTarget> RequestTarget::Parse(std::string_view target) {
  std::string_view rest = target;
  if (const std::size_t scheme = rest.find("://");
      !rest.starts_with('/') && scheme != std::string_view::npos) {
    rest.remove_prefix(scheme + 3);
    rest.remove_prefix(std::min(rest.find_first_of("/?"), rest.size()));
  } else if (!rest.starts_with('/') && rest != "*") {
    return Fail(ErrorCode::kMalformed,
                fmt::format("request target {} is not a path", Quote(target)));
  }
  rest = rest.substr(0, rest.find('#'));

  const auto bad_escape = [&] {
    return Fail(ErrorCode::kMalformed,
                fmt::format("request target {} has a '%' without two hex digits", Quote(target)));
  };
  RequestTarget parsed;
  const std::size_t question = rest.find('?');
  std::optional<std::string> path = PercentDecode(rest.substr(0, question), false);
  if (!path) {
    return bad_escape();
  }
  parsed.path = path->empty() ? "/" : *std::move(path);
  rest = question == std::string_view::npos ? "" : rest.substr(question + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (pair.empty()) {
      continue;
    }
    const std::size_t equals = pair.find('=');
    std::optional<std::string> name = PercentDecode(pair.substr(0, equals), true);
    std::optional<std::string> value = PercentDecode(
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name || !value) {
      return bad_escape();
    }
    parsed.query.emplace_back(*std::move(name), *std::move(value));
  }
  return parsed;
}

std::string PercentEncode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c)) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kHex[byte >> 4];
      encoded += kHex[byte & 0xf];
    }
  }
  return encoded;
}

std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return std::nullopt;
      }
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return decoded;
}

std::string WithQueryParameter(std::string_view url, std::string_view name,
                               std::string_view value) {
  return fmt::format("{}{}{}={}", url, url.contains('?') ? '&' : '?', PercentEncode(name),
                     PercentEncode(value));
}

}  // namespace mooncake
