// An HTTP/1.1 server for metadata, administration and metrics.
//
// Threads:       Start() makes one thread, which does all IO and runs all handlers, one at a time.
//                A handler must not block: while it runs, nobody else is served. One that has much
//                to do returns HttpSteps, and others are served between them.
// Thread-safety: Handle(), SetFallback(), Start(), Stop() from the owner's thread; port() and
//                stats() from any.
// Ownership:     handlers live until the server dies; a request only for the handler's call.
// Untrusted:     everything a client sends is bounded by the options. A slow or silent client costs
//                a connection until its timeout and delays nobody.
// Source:        RFC 9112. Asio stays inside server.cc and server_connections.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/http/message_parser.h"
#include "mooncake-common/src/net/http/router.h"

namespace mooncake {

struct HttpServerOptions {
  std::string host = "0.0.0.0";  // An address or a name; "::" serves IPv4 too.
  std::uint16_t port = 0;        // 0 = any free one, see port().
  HttpLimits limits;             // Answered 431 and 413 beyond.
  // When full, the connection that waits longest for its next request makes room; when none waits,
  // the new one is answered 503.
  std::size_t max_connections = 4096;
  Duration idle_timeout = std::chrono::seconds(75);  // Between requests; closes silently.
  // For one request to arrive, answered 408 beyond; and again for its response to be taken.
  Duration request_timeout = std::chrono::seconds(10);
  Duration drain_timeout = std::chrono::seconds(1);  // What Stop() grants to requests under way.
  // After a refusal, for what the client still sends: it is read and dropped, up to 4 MiB, so that
  // the kernel does not answer it with a reset that overtakes ours.
  Duration linger_timeout = std::chrono::seconds(1);
};

struct HttpServerStats {
  std::uint64_t requests = 0;         // Given to handlers.
  std::uint64_t refused = 0;          // Malformed, too large, too slow, or beyond max_connections.
  std::uint64_t connections = 0;      // Accepted since the start.
  std::uint64_t connections_now = 0;  // Open.
};

class HttpServer {
 public:
  explicit HttpServer(HttpServerOptions options = {});
  ~HttpServer();  // Stops.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Before Start(). See Router for the rules; `Router::kAnyMethod` takes a path's other methods.
  void Handle(std::string_view method, std::string_view path, HttpHandler handler);
  void SetFallback(HttpHandler handler);

  // Listens, then serves until Stop(). At most once.
  //
  // Errors: those of SocketListen(), with the remedy added: kAlreadyExists when the port is taken,
  // kPermissionDenied, kUnavailable for an address of another machine, kDns.
  [[nodiscard]] Result<void> Start();

  // Takes no new connections, closes idle ones, grants `drain_timeout` to the others, joins. May be
  // called twice, and before Start(); never from a handler.
  void Stop();

  // The port that is listened on; 0 before Start().
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] HttpServerStats stats() const;

 private:
  class Impl;

  const HttpServerOptions options_;
  Router router_;
  std::unique_ptr<Impl> impl_;  // From Start() on.
};

}  // namespace mooncake
