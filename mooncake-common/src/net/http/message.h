// Requests and responses as values, and their text on the wire.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mooncake-common/src/net/http/url.h"

namespace mooncake {

// Header fields in the order of the wire. Names compare without case; one may occur repeatedly.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The first value of `name`.
[[nodiscard]] std::optional<std::string_view> FindHeader(const HttpHeaders& headers,
                                                         std::string_view name);

// True if `name` can be a header's name, and `value` its value: no line ends or other controls, so
// that neither can smuggle in a second header.
[[nodiscard]] bool IsValidHeader(std::string_view name, std::string_view value);

// A request as a server's handler sees it.
struct HttpRequest {
  std::string method;     // As written: "GET".
  std::string path;       // Percent-decoded, starts with '/' (or is "*").
  QueryParameters query;  // Percent-decoded, in order.
  HttpHeaders headers;
  std::string body;

  // The first query parameter of that name.
  [[nodiscard]] std::optional<std::string_view> Query(std::string_view name) const;
  [[nodiscard]] std::optional<std::string_view> Header(std::string_view name) const {
    return FindHeader(headers, name);
  }
};

struct HttpResponse {
  int status = 200;
  std::optional<std::string> content_type;
  std::string body;
  // From a handler: further fields (Allow, Retry-After). From the client: all that the server sent,
  // Content-Type too.
  HttpHeaders headers;
};

// "Not Found" for 404; "Unknown" for a number that RFC 9110 does not name.
[[nodiscard]] std::string_view HttpReason(int status);

enum class AfterResponse : unsigned char { kKeepAlive, kKeepAliveOfHttp10, kClose };

// The response's bytes. Content-Length is always there; `send_body` is false in answer to HEAD. A
// response that cannot be sent (status outside 200..599, invalid header) becomes a plain 500.
[[nodiscard]] std::string EncodeResponse(const HttpResponse& response, AfterResponse after,
                                         bool send_body);

// What a client sends.
struct HttpOutgoingRequest {
  std::string method = "GET";
  std::string url;
  std::optional<std::string> content_type;  // Only sent with a body or PUT, POST, PATCH.
  std::string body;
  HttpHeaders headers;  // Further fields, such as Authorization.
};

// The request's bytes: Host, Accept: */*, further fields, then Content-Type and Content-Length when
// there is a body or the method usually has one.
//
// Errors: kInvalidArgument for a method or header that HTTP does not allow, or a further field that
// is set by us (Host, Accept, Content-Length, Content-Type, Transfer-Encoding, Connection).
[[nodiscard]] Result<std::string> EncodeRequest(const HttpOutgoingRequest& request, const Url& url);

}  // namespace mooncake
