// The open connections of an HTTP server: each answers what its client asks, within the bounds of
// the options.
//
// Thread-safety: all belongs to the server's thread, but the constructor and stats().
// Ownership:     borrows what it is made with. A connection lives until it closes: by its client,
//                its deadline, or CloseAll().
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "mooncake-common/src/net/http/router.h"
#include "mooncake-common/src/net/http/server.h"

namespace mooncake {

class HttpConnections {
 public:
  HttpConnections(const HttpServerOptions& options, Router& router, boost::asio::io_context& io)
      : options_(options), router_(router), io_(io) {}

  // Serves a new connection; refuses it when there are too many and none is idle.
  void Take(boost::asio::ip::tcp::socket socket);

  // Closes the connection that waits longest for its next request. False: none waits.
  bool CloseLongestIdle();

  // Closes the idle ones, and each other after the request it is at. `on_none_left` is called once,
  // perhaps at once.
  void Drain(std::function<void()> on_none_left);
  void CloseAll();

  [[nodiscard]] HttpServerStats stats() const;

 private:
  static constexpr std::size_t kReadBytes = 16 << 10;

  class Connection;

  HttpAnswer Dispatch(const HttpRequest& request);
  void CountRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }
  void Forget(Connection* connection);
  void TellIfNoneLeft();

  const HttpServerOptions& options_;
  Router& router_;
  boost::asio::io_context& io_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> open_;
  std::list<Connection*> idle_;             // Waiting for a request, the longest first.
  std::array<char, kReadBytes> scratch_{};  // Shared: no connection keeps it beyond one turn.
  bool draining_ = false;
  std::function<void()> on_none_left_;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> open_count_{0};
};

}  // namespace mooncake
