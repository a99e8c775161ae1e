// An HTTP/1.1 client for http:// and https://, whose caller waits for the answer.
//
// Threads:       the caller's own, and for the lookup of a name a short-lived one.
// Thread-safety: any thread, at the same time; calls do not wait for each other.
// Connections:   kept alive and reused; a bounded number of unused ones is kept. A request that
//                finds its kept connection closed by the server is sent again on a new one, unless
//                it is a POST or PATCH, which may have been carried out already.
// Not done:      proxies (http_proxy is not read), redirects (3xx is returned), cookies,
//                compression.
// Source:        RFC 9112; the headers are those of docs/formats/http_metadata.md.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/net/http/message_parser.h"
#include "mooncake-common/src/net/http/stream.h"
#include "mooncake-common/src/net/http/tls.h"

namespace mooncake {

struct HttpClientOptions {
  Duration total_timeout = std::chrono::milliseconds(3000);    // From the call to the whole answer.
  Duration connect_timeout = std::chrono::milliseconds(1500);  // Name, TCP and TLS together.
  HttpLimits response_limits = {.header_bytes = 64 << 10, .body_bytes = 16 << 20};
  std::size_t max_idle_connections = 16;              // Of all servers together.
  Duration max_idle_time = std::chrono::seconds(60);  // Older ones are not used again.
  TlsOptions tls;
};

class HttpClient {
 public:
  explicit HttpClient(HttpClientOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends and waits. Any status is a success: a 404 is for the caller to judge.
  //
  // Errors: kInvalidArgument (the request, see Url::Parse and EncodeRequest), kDns, kUnavailable
  // (refused, unreachable, connection lost), kTimeout, kPermissionDenied (certificate), kMalformed
  // (no HTTP), kExhausted (a response beyond the limits). The message starts with method and URL.
  [[nodiscard]] Result<HttpResponse> Send(const HttpOutgoingRequest& request);

  [[nodiscard]] Result<HttpResponse> Get(std::string_view url);
  [[nodiscard]] Result<HttpResponse> Delete(std::string_view url);
  [[nodiscard]] Result<HttpResponse> Put(std::string_view url, std::string_view content_type,
                                         std::string_view body);
  [[nodiscard]] Result<HttpResponse> Post(std::string_view url, std::string_view content_type,
                                          std::string_view body);

  // How many connections were opened so far.
  [[nodiscard]] std::uint64_t connections_opened() const;

 private:
  struct IdleConnection {
    std::string server;
    std::unique_ptr<Stream> stream;
    Instant since;
  };

  [[nodiscard]] Result<HttpResponse> TrySend(const HttpOutgoingRequest& request, const Url& url,
                                             std::string_view text);
  [[nodiscard]] Result<std::unique_ptr<Stream>> Connect(const Url& url, Instant deadline);
  [[nodiscard]] Result<std::shared_ptr<TlsContext>> Tls();
  [[nodiscard]] std::unique_ptr<Stream> TakeIdle(std::string_view server);
  void KeepIdle(std::string server, std::unique_ptr<Stream> stream);

  const HttpClientOptions options_;
  mutable Mutex mutex_;
  std::list<IdleConnection> idle_ MC_GUARDED_BY(mutex_);  // The longest unused first.
  std::shared_ptr<TlsContext> tls_ MC_GUARDED_BY(mutex_);
  std::uint64_t connections_opened_ MC_GUARDED_BY(mutex_) = 0;
};

}  // namespace mooncake
