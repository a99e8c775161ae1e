// URLs as HTTP needs them: split into parts, checked, and safe to put into a request line.
//
// Thread-safety: values and pure functions.
// Source:        RFC 3986; RFC 9110 section 4.2; form encoding of queries ('+' is a space).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/result.h"

namespace mooncake {

struct Url {
  bool tls = false;        // https
  std::string host;        // Lower case, without brackets; an IPv6 literal may end in %zone.
  std::uint16_t port = 0;  // Never 0; 80 or 443 when the text names none.
  // Path and query as written, starting with '/'. Visible ASCII only; the fragment is dropped.
  std::string target;

  // Splits "http[s]://host[:port][/path][?query]".
  //
  // Errors: kInvalidArgument names what is wrong: another scheme, a user name or password (their
  // text is not repeated), no host, a port outside 1..65535, a bad IPv6 literal, spaces or control
  // characters.
  [[nodiscard]] static Result<Url> Parse(std::string_view text);

  // What stands in a Host header: IPv6 in brackets and without its zone, the port when it is not
  // the scheme's own.
  [[nodiscard]] std::string Authority() const;

  // The whole URL again; Parse() of it gives an equal Url.
  [[nodiscard]] std::string ToString() const;

  friend bool operator==(const Url&, const Url&) = default;
};

// Pairs in the order of the text; a name may occur more than once.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;

// A request target, decoded.
struct RequestTarget {
  std::string path;
  QueryParameters query;

  // Reads "/path?a=1", "http://host/path?a=1" or "*". In the query '+' means a space; a parameter
  // without '=' has an empty value.
  //
  // Errors: kMalformed if it is none of these, or a '%' is not followed by two hex digits.
  [[nodiscard]] static Result<RequestTarget> Parse(std::string_view target);
};

// Replaces every byte but unreserved ones (letters, digits, "-._~") by %XX, upper case.
[[nodiscard]] std::string PercentEncode(std::string_view text);

// The reverse; nullopt if a '%' is not followed by two hex digits. Any byte may come out, 0 too.
[[nodiscard]] std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space);

// `url` with one more query parameter, both sides encoded. A fragment in `url` is not expected.
[[nodiscard]] std::string WithQueryParameter(std::string_view url, std::string_view name,
                                             std::string_view value);

}  // namespace mooncake
