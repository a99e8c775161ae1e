#include "mooncake-common/src/net/http/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

// RFC 9110 section 5.6.2.
bool IsToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.contains(c);
  });
}

bool CanBeSent(const HttpResponse& response) {
  return response.status >= 200 && response.status <= 599 &&
         (!response.content_type || IsValidHeader("Content-Type", *response.content_type)) &&
         std::ranges::all_of(response.headers, [](const auto& header) {
           return IsValidHeader(header.first, header.second);
         });
}

}  // namespace

std::optional<std::string_view> FindHeader(const HttpHeaders& headers, std::string_view name) {
  const auto found = std::ranges::find_if(
      headers, [&](const auto& header) { return EqualsIgnoreCase(header.first, name); });
  return found == headers.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

bool IsValidHeader(std::string_view name, std::string_view value) {
  return IsToken(name) && std::ranges::none_of(value, [](char c) {
           return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f';
         });
}

std::optional<std::string_view> HttpRequest::Query(std::string_view name) const {
  const auto found =
      std::ranges::find_if(query, [&](const auto& parameter) { return parameter.first == name; });
  return found == query.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

std::string_view HttpReason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

std::string EncodeResponse(const HttpResponse& response, AfterResponse after, bool send_body) {
  if (!CanBeSent(response)) {
    return EncodeResponse({.status = 500, .body = "the handler's response is not valid HTTP\n"},
                          after, send_body);
  }
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\n", response.status, HttpReason(response.status));
  if (response.content_type) {
    fmt::format_to(out, "Content-Type: {}\r\n", *response.content_type);
  }
  for (const auto& [name, value] : response.headers) {
    fmt::format_to(out, "{}: {}\r\n", name, value);
  }
  const bool may_have_body = response.status != 204 && response.status != 304;
  if (may_have_body) {
    fmt::format_to(out, "Content-Length: {}\r\n", response.body.size());
  }
  if (after != AfterResponse::kKeepAlive) {
    text += after == AfterResponse::kClose ? "Connection: close\r\n" : "Connection: keep-alive\r\n";
  }
  text += "\r\n";
  if (send_body && may_have_body) {
    text += response.body;
  }
  return text;
}

Result<std::string> EncodeRequest(const HttpOutgoingRequest& request, const Url& url) {
  constexpr std::array<std::string_view, 6> kOurs = {
      "Host", "Accept", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection"};
  if (!IsToken(request.method)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is not an HTTP method", Quote(request.method)));
  }
  if (request.content_type && !IsValidHeader("Content-Type", *request.content_type)) {
    return Fail(ErrorCode::kInvalidArgument, "the content type contains a control character");
  }
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{} {} HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\n", request.method, url.target,
                 url.Authority());
  for (const auto& [name, value] : request.headers) {
    const bool ours = std::ranges::any_of(
        kOurs, [&](std::string_view our) { return EqualsIgnoreCase(our, name); });
    if (ours || !IsValidHeader(name, value)) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("header {} cannot be sent: {}", Quote(name),
                              ours ? "the client sets it itself"
                                   : "its name or value has a character that HTTP does not allow"));
    }
    fmt::format_to(out, "{}: {}\r\n", name, value);
  }
  if (!request.body.empty() || request.method == "PUT" || request.method == "POST" ||
      request.method == "PATCH") {
    if (request.content_type) {
      fmt::format_to(out, "Content-Type: {}\r\n", *request.content_type);
    }
    fmt::format_to(out, "Content-Length: {}\r\n", request.body.size());
  }
  text += "\r\n";
  text += request.body;
  return text;
}

}  // namespace mooncake
