#include "mooncake-common/src/net/http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "mooncake-common/src/net/resolve.h"

namespace mooncake {
namespace {

constexpr std::size_t kReadBytes = 16 << 10;

Instant Now() { return SteadyClock::Get().Now(); }

// Connections are shared by requests to one scheme, host and port.
std::string ServerOf(const Url& url) {
  return fmt::format("{}{}:{}", url.tls ? "s:" : "p:", url.host, url.port);
}

struct Exchange {
  Result<HttpResponse> response;
  bool answered = false;  // At least one byte came back.
  bool reusable = false;  // The connection can carry another request.
};

std::unexpected<Error> BadResponse(ParseState state, const std::string& why) {
  if (state == ParseState::kMalformed) {
    return Fail(ErrorCode::kMalformed, fmt::format("the answer is not HTTP: {}", why));
  }
  return Fail(ErrorCode::kExhausted,
              fmt::format("the answer's {} is larger than this client accepts",
                          state == ParseState::kBodyTooLarge ? "body" : "header"));
}

Exchange RunExchange(Stream& stream, std::string_view text, std::string_view method,
                     const HttpLimits& limits, Instant deadline) {
  // A server may refuse a large body before it has read all of it, and close: its answer is then
  // worth more than our failure to write.
  const Result<void> sent = stream.WriteAll(text, deadline);
  ResponseParser parser(limits, method);
  std::array<char, kReadBytes>
      buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before read
  bool answered = false;
  for (;;) {
    const Result<std::size_t> bytes = stream.ReadSome(buffer, deadline);
    if (!bytes) {
      return {.response = std::unexpected(sent ? bytes.error() : sent.error()),
              .answered = answered};
    }
    if (*bytes == 0) {
      if (!answered) {
        return {.response = sent ? Fail(ErrorCode::kUnavailable,
                                        "the server closed the connection without an answer")
                                 : std::unexpected(sent.error())};
      }
      const ParseState state = parser.FeedEnd();
      if (state != ParseState::kComplete) {
        return {.response = Fail(ErrorCode::kUnavailable,
                                 "the server closed the connection within its answer"),
                .answered = true};
      }
      return {.response = parser.Take(), .answered = true};
    }
    answered = true;
    const ParseProgress progress = parser.Feed(std::string_view(buffer.data(), *bytes));
    if (progress.state == ParseState::kComplete) {
      const bool reusable =
          sent.has_value() && parser.KeepAlive() && progress.consumed_bytes == *bytes;
      return {.response = parser.Take(), .answered = true, .reusable = reusable};
    }
    if (progress.state != ParseState::kNeedMore) {
      return {.response = BadResponse(progress.state, parser.Explain()), .answered = true};
    }
  }
}

}  // namespace

HttpClient::HttpClient(HttpClientOptions options) : options_(std::move(options)) {}
HttpClient::~HttpClient() = default;

Result<HttpResponse> HttpClient::Send(const HttpOutgoingRequest& request) {
  MC_TRY_ASSIGN(const Url url, Url::Parse(request.url));
  MC_TRY_ASSIGN(const std::string text, EncodeRequest(request, url));
  Result<HttpResponse> response = TrySend(request, url, text);
  if (!response) {
    response.error().message =
        fmt::format("{} {}: {}", request.method, url.ToString(), response.error().message);
    if (response.error().code == ErrorCode::kTimeout) {
      response.error().message += fmt::format(
          " (limits: {} ms to connect, {} ms in all)",
          std::chrono::ceil<std::chrono::milliseconds>(options_.connect_timeout).count(),
          std::chrono::ceil<std::chrono::milliseconds>(options_.total_timeout).count());
    }
  }
  return response;
}

Result<HttpResponse> HttpClient::TrySend(const HttpOutgoingRequest& request, const Url& url,
                                         std::string_view text) {
  const Instant start = Now();
  const Instant deadline = start + options_.total_timeout;
  const bool repeatable = request.method != "POST" && request.method != "PATCH";
  const std::string server = ServerOf(url);

  std::unique_ptr<Stream> stream = TakeIdle(server);
  for (;;) {
    const bool reused = stream != nullptr;
    if (!reused) {
      MC_TRY_ASSIGN(stream, Connect(url, std::min(deadline, Now() + options_.connect_timeout)));
    }
    Exchange exchange =
        RunExchange(*stream, text, request.method, options_.response_limits, deadline);
    if (exchange.reusable) {
      KeepIdle(server, std::move(stream));
    }
    const bool again = !exchange.response && reused && repeatable && !exchange.answered &&
                       exchange.response.error().code != ErrorCode::kTimeout;
    if (!again) {
      return std::move(exchange.response);
    }
    stream.reset();
  }
}

Result<std::unique_ptr<Stream>> HttpClient::Connect(const Url& url, Instant deadline) {
  std::shared_ptr<TlsContext> tls;
  if (url.tls) {
    MC_TRY_ASSIGN(tls, Tls());
  }
  MC_TRY_ASSIGN(const std::vector<SocketAddress> addresses,
                ResolveAll(url.host, url.port, deadline));
  {
    MutexLock lock(mutex_);
    ++connections_opened_;
  }
  if (!tls) {
    return ConnectPlain(addresses, deadline);
  }
  MC_TRY_ASSIGN(UniqueFd fd, ConnectSocket(addresses, deadline));
  return tls->Connect(std::move(fd), url.host, deadline);
}

Result<std::shared_ptr<TlsContext>> HttpClient::Tls() {
  {
    MutexLock lock(mutex_);
    if (tls_) {
      return tls_;
    }
  }
  // Reads files, so not under the lock; of two made at once the first is kept.
  MC_TRY_ASSIGN(std::shared_ptr<TlsContext> made, TlsContext::Create(options_.tls));
  MutexLock lock(mutex_);
  if (!tls_) {
    tls_ = std::move(made);
  }
  return tls_;
}

std::unique_ptr<Stream> HttpClient::TakeIdle(std::string_view server) {
  const Instant oldest = Now() - options_.max_idle_time;
  for (;;) {
    std::list<IdleConnection> taken;
    std::list<IdleConnection> expired;  // Closed after the lock is released.
    {
      MutexLock lock(mutex_);
      while (!idle_.empty() && idle_.front().since < oldest) {
        expired.splice(expired.end(), idle_, idle_.begin());
      }
      // The most recently used one is the least likely to be closed by the server.
      const auto found =
          std::ranges::find(idle_.rbegin(), idle_.rend(), server, &IdleConnection::server);
      if (found == idle_.rend()) {
        return nullptr;
      }
      taken.splice(taken.end(), idle_, std::prev(found.base()));
    }
    if (taken.front().stream->IsQuiet()) {
      return std::move(taken.front().stream);
    }
  }
}

void HttpClient::KeepIdle(std::string server, std::unique_ptr<Stream> stream) {
  std::list<IdleConnection> surplus;  // Closed after the lock is released.
  MutexLock lock(mutex_);
  idle_.push_back({.server = std::move(server), .stream = std::move(stream), .since = Now()});
  while (idle_.size() > options_.max_idle_connections) {
    surplus.splice(surplus.end(), idle_, idle_.begin());
  }
}

Result<HttpResponse> HttpClient::Get(std::string_view url) {
  return Send({.method = "GET", .url = std::string(url)});
}

Result<HttpResponse> HttpClient::Delete(std::string_view url) {
  return Send({.method = "DELETE", .url = std::string(url)});
}

Result<HttpResponse> HttpClient::Put(std::string_view url, std::string_view content_type,
                                     std::string_view body) {
  return Send({.method = "PUT",
               .url = std::string(url),
               .content_type = std::string(content_type),
               .body = std::string(body)});
}

Result<HttpResponse> HttpClient::Post(std::string_view url, std::string_view content_type,
                                      std::string_view body) {
  return Send({.method = "POST",
               .url = std::string(url),
               .content_type = std::string(content_type),
               .body = std::string(body)});
}

std::uint64_t HttpClient::connections_opened() const {
  MutexLock lock(mutex_);
  return connections_opened_;
}

}  // namespace mooncake
