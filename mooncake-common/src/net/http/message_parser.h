// Turns bytes, in whatever pieces they come, into one HTTP message; holds to limits.
//
// Sans-IO: server, client and fuzz target drive these same classes.
// Thread-safety: none; one thread at a time.
// Source:        RFC 9112, through Boost.Beast, which stays inside message_parser.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "mooncake-common/src/net/http/message.h"

namespace mooncake {

struct HttpLimits {
  // The request or status line, and again all fields; also the line before a chunk, and the
  // trailer.
  std::size_t header_bytes = 16 << 10;
  std::size_t body_bytes = 1 << 20;
};

enum class ParseState : std::uint8_t {
  kNeedMore,
  kComplete,
  kMalformed,
  kHeaderTooLarge,
  kBodyTooLarge,
};

struct ParseProgress {
  std::size_t consumed_bytes = 0;  // The rest belongs to the next message.
  ParseState state = ParseState::kNeedMore;
};

// One request. After kComplete take it; after an error only Explain() is of use.
class RequestParser {
 public:
  explicit RequestParser(const HttpLimits& limits);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  // Takes the next bytes. All are consumed unless the request is complete or in error.
  [[nodiscard]] ParseProgress Feed(std::string_view bytes);

  // True once, when the header is complete and the client waits for "100 Continue" before it sends
  // the body.
  [[nodiscard]] bool TakeExpectContinue();

  // The complete request; leaves the parser empty.
  //
  // Errors: kMalformed if its target does not decode.
  [[nodiscard]] Result<HttpRequest> Take();

  // What the connection does after the answer, as version and Connection header say.
  [[nodiscard]] AfterResponse After() const;

  // Why Feed() gave an error.
  [[nodiscard]] std::string Explain() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One response, to a request of `method`; interim responses (1xx) before it are skipped.
class ResponseParser {
 public:
  ResponseParser(const HttpLimits& limits, std::string_view method);
  ~ResponseParser();

  [[nodiscard]] ParseProgress Feed(std::string_view bytes);

  // The peer closed. kComplete if that is how this response ends, else kMalformed.
  [[nodiscard]] ParseState FeedEnd();

  // The complete response; leaves the parser empty.
  [[nodiscard]] HttpResponse Take();

  // True if the connection can carry another request.
  [[nodiscard]] bool KeepAlive() const;

  [[nodiscard]] std::string Explain() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mooncake
