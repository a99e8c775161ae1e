#include "mooncake-common/src/net/http/message_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>
#include <utility>

namespace mooncake {
namespace {

namespace http = boost::beast::http;

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

ParseState StateOf(const boost::beast::error_code& error) {
  if (error == http::error::need_more) {
    return ParseState::kNeedMore;
  }
  if (error == http::error::header_limit) {
    return ParseState::kHeaderTooLarge;
  }
  if (error == http::error::body_limit || error == http::error::buffer_overflow) {
    return ParseState::kBodyTooLarge;
  }
  return error ? ParseState::kMalformed : ParseState::kComplete;
}

// What requests and responses have in common: keeps the bytes that Beast cannot use yet.
template <bool kIsRequest>
class MessageFeeder {
 public:
  using Parser = http::parser<kIsRequest, http::string_body>;

  explicit MessageFeeder(const HttpLimits& limits) : limits_(limits) { Restart(); }

  void Restart() {
    pending_.clear();
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
    parser_->body_limit(limits_.body_bytes);
  }

  ParseProgress Feed(std::string_view bytes) {
    if (bytes.empty()) {
      return {};
    }
    const bool joined = !pending_.empty();
    if (joined) {
      pending_ += bytes;
    }
    std::string_view input = joined ? std::string_view(pending_) : bytes;
    boost::beast::error_code error;
    input.remove_prefix(parser_->put(boost::asio::buffer(input.data(), input.size()), error));
    ParseState state = StateOf(error);
    if (state == ParseState::kComplete && !parser_->is_done()) {
      state = ParseState::kNeedMore;
    }
    if (state != ParseState::kNeedMore) {
      if (error) {
        explanation_ = error.message();
      }
      return {.consumed_bytes = bytes.size() - std::min(input.size(), bytes.size()),
              .state = state};
    }
    // Beast bounds a header, but neither the line before a chunk nor the trailer.
    if (input.size() > limits_.header_bytes) {
      explanation_ = "the header, a chunk's header or the trailer exceeds the limit";
      return {.consumed_bytes = bytes.size(), .state = ParseState::kHeaderTooLarge};
    }
    if (joined) {
      pending_.erase(0, pending_.size() - input.size());
    } else {
      pending_ = input;
    }
    return {.consumed_bytes = bytes.size(), .state = ParseState::kNeedMore};
  }

  Parser& parser() { return *parser_; }
  const Parser& parser() const { return *parser_; }
  std::string& explanation() { return explanation_; }

  HttpHeaders TakeHeaders() const {
    HttpHeaders headers;
    for (const auto& field : parser_->get()) {
      headers.emplace_back(View(field.name_string()), View(field.value()));
    }
    return headers;
  }

 private:
  const HttpLimits limits_;
  std::optional<Parser> parser_;
  std::string pending_;
  std::string explanation_;
};

}  // namespace

struct RequestParser::Impl {
  explicit Impl(const HttpLimits& limits) : feeder(limits) {}
  MessageFeeder<true> feeder;
  bool continue_taken = false;
};

RequestParser::RequestParser(const HttpLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

ParseProgress RequestParser::Feed(std::string_view bytes) { return impl_->feeder.Feed(bytes); }

bool RequestParser::TakeExpectContinue() {
  const auto& parser = impl_->feeder.parser();
  if (impl_->continue_taken || !parser.is_header_done() || parser.is_done()) {
    return false;
  }
  impl_->continue_taken = true;
  const auto& message = parser.get();
  return message.version() >= 11 &&
         boost::beast::iequals(message[http::field::expect], "100-continue");
}

Result<HttpRequest> RequestParser::Take() {
  auto& message = impl_->feeder.parser().get();
  if (message.count(http::field::transfer_encoding) != 0 && !message.chunked()) {
    // Where such a body ends is unknown, so what follows must not be read as a request.
    return Fail(ErrorCode::kMalformed, "only 'chunked' is understood as Transfer-Encoding");
  }
  MC_TRY_ASSIGN(RequestTarget target, RequestTarget::Parse(View(message.target())));
  HttpRequest request{.method = std::string(View(message.method_string())),
                      .path = std::move(target.path),
                      .query = std::move(target.query),
                      .headers = impl_->feeder.TakeHeaders(),
                      .body = std::move(message.body())};
  return request;
}

AfterResponse RequestParser::After() const {
  const auto& message = impl_->feeder.parser().get();
  if (!message.keep_alive()) {
    return AfterResponse::kClose;
  }
  return message.version() >= 11 ? AfterResponse::kKeepAlive : AfterResponse::kKeepAliveOfHttp10;
}

std::string RequestParser::Explain() const { return impl_->feeder.explanation(); }

struct ResponseParser::Impl {
  Impl(const HttpLimits& limits, std::string_view method)
      : feeder(limits), is_head(method == "HEAD") {}

  void Restart() {
    feeder.Restart();
    feeder.parser().skip(is_head);
  }

  MessageFeeder<false> feeder;
  const bool is_head;
  // A server may send interim responses as it likes; we read a bounded number of them.
  int interim_left = 16;
};

ResponseParser::ResponseParser(const HttpLimits& limits, std::string_view method)
    : impl_(std::make_unique<Impl>(limits, method)) {
  impl_->Restart();
}
ResponseParser::~ResponseParser() = default;

ParseProgress ResponseParser::Feed(std::string_view bytes) {
  std::size_t consumed_bytes = 0;
  for (;;) {
    ParseProgress progress = impl_->feeder.Feed(bytes.substr(consumed_bytes));
    progress.consumed_bytes += consumed_bytes;
    const unsigned status = impl_->feeder.parser().get().result_int();
    if (progress.state != ParseState::kComplete || status >= 200) {
      return progress;
    }
    if (impl_->interim_left-- == 0) {
      impl_->feeder.explanation() = "too many interim responses";
      progress.state = ParseState::kMalformed;
      return progress;
    }
    consumed_bytes = progress.consumed_bytes;
    impl_->Restart();
  }
}

ParseState ResponseParser::FeedEnd() {
  auto& parser = impl_->feeder.parser();
  if (!parser.got_some()) {
    impl_->feeder.explanation() = "the connection ended before a response";
    return ParseState::kMalformed;
  }
  boost::beast::error_code error;
  parser.put_eof(error);
  if (error) {
    impl_->feeder.explanation() = error.message();
    return ParseState::kMalformed;
  }
  return ParseState::kComplete;
}

HttpResponse ResponseParser::Take() {
  auto& message = impl_->feeder.parser().get();
  HttpResponse response{.status = static_cast<int>(message.result_int()),
                        .content_type = std::nullopt,
                        .body = std::move(message.body()),
                        .headers = impl_->feeder.TakeHeaders()};
  if (const auto type = FindHeader(response.headers, "Content-Type")) {
    response.content_type = std::string(*type);
  }
  return response;
}

bool ResponseParser::KeepAlive() const {
  const auto& parser = impl_->feeder.parser();
  return parser.keep_alive() && !parser.need_eof();
}

std::string ResponseParser::Explain() const { return impl_->feeder.explanation(); }

}  // namespace mooncake
