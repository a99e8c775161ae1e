// Any bytes, cut anywhere, through the parsers as server and client use them: no crash, limits
// hold, and the cuts do not change the outcome.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mooncake-common/src/net/http/message_parser.h"

namespace {

using mooncake::HttpLimits;
using mooncake::ParseProgress;
using mooncake::ParseState;
using mooncake::RequestParser;
using mooncake::ResponseParser;

constexpr HttpLimits kLimits{.header_bytes = 512, .body_bytes = 256};

// As a connection does: request after request until one is in error. Returns how many there were.
int ServeRequests(std::string_view bytes, std::size_t piece_bytes) {
  int requests = 0;
  RequestParser parser(kLimits);
  while (!bytes.empty()) {
    const ParseProgress progress = parser.Feed(bytes.substr(0, piece_bytes));
    MC_CHECK(progress.consumed_bytes <= std::min(piece_bytes, bytes.size()));
    bytes.remove_prefix(progress.consumed_bytes);
    (void)parser.TakeExpectContinue();
    if (progress.state == ParseState::kComplete) {
      (void)parser.After();
      const auto request = parser.Take();
      if (!request) {
        return requests;
      }
      MC_CHECK(request->body.size() <= kLimits.body_bytes);
      ++requests;
      parser = RequestParser(kLimits);
    } else if (progress.state != ParseState::kNeedMore) {
      MC_CHECK(!parser.Explain().empty());
      return requests;
    } else {
      MC_CHECK(progress.consumed_bytes > 0);
    }
  }
  return requests;
}

void ReadResponse(std::string_view bytes, std::size_t piece_bytes) {
  ResponseParser parser(kLimits, "GET");
  ParseState state = ParseState::kNeedMore;
  while (!bytes.empty() && state == ParseState::kNeedMore) {
    const ParseProgress progress = parser.Feed(bytes.substr(0, piece_bytes));
    bytes.remove_prefix(progress.consumed_bytes);
    state = progress.state;
  }
  if (state == ParseState::kNeedMore) {
    state = parser.FeedEnd();
  }
  if (state == ParseState::kComplete) {
    (void)parser.KeepAlive();
    MC_CHECK(parser.Take().body.size() <= kLimits.body_bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::size_t piece_bytes = data[0] % 64 + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const int requests = ServeRequests(bytes, size);
  const int again = ServeRequests(bytes, piece_bytes);
  // How early an error is seen depends on the cuts, and so does the last of the limit's bytes.
  MC_CHECK(requests == again || size > kLimits.header_bytes);
  ReadResponse(bytes, size);
  ReadResponse(bytes, piece_bytes);
  return 0;
}
