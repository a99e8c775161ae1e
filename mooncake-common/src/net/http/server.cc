#include "mooncake-common/src/net/http/server.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <memory>
#include <utility>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/log_fold.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-common/src/net/http/server_connections.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr Duration kAcceptRetry = std::chrono::milliseconds(100);

}  // namespace

// Listens, and ends. All but the constructor, Start(), Stop() and what is const belongs to the
// server's thread.
class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, Router& router)
      : options_(options),
        acceptor_(io_),
        accept_retry_(io_),
        drain_timer_(io_),
        connections_(options_, router, io_) {}

  [[nodiscard]] Result<void> Start(UniqueFd listener, std::uint16_t port);
  void Stop();

  std::uint16_t port() const { return port_; }
  HttpServerStats stats() const { return connections_.stats(); }

 private:
  void Accept();
  void OnAccept(const error_code& error, tcp::socket socket);
  void BeginDrain();
  void Run();

  const HttpServerOptions options_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer accept_retry_;
  asio::steady_timer drain_timer_;
  HttpConnections connections_;
  LogFold accept_fold_;
  LogFold exception_fold_;
  bool draining_ = false;
  std::uint16_t port_ = 0;
  Thread thread_;
  bool running_ = false;  // The owner's.
};

Result<void> HttpServer::Impl::Start(UniqueFd listener, std::uint16_t port) {
  port_ = port;
  sockaddr_storage address{};
  socklen_t length_bytes = sizeof address;
  const bool is_v6 =
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length_bytes) == 0 &&
      address.ss_family == AF_INET6;
  acceptor_.assign(is_v6 ? tcp::v6() : tcp::v4(), listener.get());
  (void)listener.Release();
  Accept();
  MC_TRY_ASSIGN(thread_, Thread::Start("mc-http", [this] { Run(); }));
  running_ = true;
  return {};
}

void HttpServer::Impl::Run() {
  for (;;) {
    try {
      io_.run();
      return;
    } catch (const std::exception& exception) {
      // What threw loses its turn; the connection it served ends by its deadline.
      if (const auto times = exception_fold_.Admit(SteadyClock::Get().Now())) {
        MC_LOG_ERROR("HTTP server on port {}: {} ({} times)", port_, exception.what(), times);
      }
    }
  }
}

void HttpServer::Impl::Stop() {
  if (!std::exchange(running_, false)) {
    return;
  }
  asio::post(io_, [this] { BeginDrain(); });
  thread_.Join();
}

void HttpServer::Impl::Accept() {
  acceptor_.async_accept(
      [this](const error_code& error, tcp::socket socket) { OnAccept(error, std::move(socket)); });
}

void HttpServer::Impl::OnAccept(const error_code& error, tcp::socket socket) {
  if (draining_) {
    return;
  }
  if (error) {
    // Most likely the process has no descriptors left. Trying again at once would spin.
    if (const auto times = accept_fold_.Admit(SteadyClock::Get().Now())) {
      MC_LOG_WARNING("HTTP server on port {}: accept: {}; connections wait ({} times)", port_,
                     error.message(), times);
    }
    connections_.CloseLongestIdle();
    accept_retry_.expires_after(kAcceptRetry);
    accept_retry_.async_wait([this](const error_code& cancelled) {
      if (!cancelled && !draining_) {
        Accept();
      }
    });
    return;
  }
  Accept();  // First: taking the connection may throw for want of memory.
  connections_.Take(std::move(socket));
}

void HttpServer::Impl::BeginDrain() {
  draining_ = true;
  error_code ignored;
  static_cast<void>(acceptor_.close(ignored));
  accept_retry_.cancel();
  drain_timer_.expires_after(options_.drain_timeout);
  drain_timer_.async_wait([this](const error_code& cancelled) {
    if (!cancelled) {
      connections_.CloseAll();
    }
  });
  // With the timer the last work of io_ is gone, and its thread ends.
  connections_.Drain([this] { drain_timer_.cancel(); });
}

HttpServer::HttpServer(HttpServerOptions options) : options_(std::move(options)) {}

// NOLINTNEXTLINE(bugprone-exception-escape): only for want of memory, and then there is no way on.
HttpServer::~HttpServer() { Stop(); }

void HttpServer::Handle(std::string_view method, std::string_view path, HttpHandler handler) {
  MC_CHECK(impl_ == nullptr);
  router_.Handle(method, path, std::move(handler));
}

void HttpServer::SetFallback(HttpHandler handler) {
  MC_CHECK(impl_ == nullptr);
  router_.SetFallback(std::move(handler));
}

Result<void> HttpServer::Start() {
  MC_CHECK(impl_ == nullptr);
  Result<UniqueFd> listener = SocketListen(options_.host, options_.port);
  if (!listener) {
    Error error = listener.error();
    if (error.code == ErrorCode::kAlreadyExists) {
      error.message += fmt::format(
          "; stop the process that holds port {0} (find it with: ss -ltnp 'sport = :{0}') or "
          "choose another port",
          options_.port);
    } else if (error.code == ErrorCode::kPermissionDenied) {
      error.message += "; choose a port above 1023";
    } else {
      error.message += fmt::format("; choose an address of this machine instead of {}",
                                   FormatHostPort(options_.host, options_.port));
    }
    error.message.insert(0, "start the HTTP server: ");
    return std::unexpected(std::move(error));
  }
  MC_TRY_ASSIGN(const std::uint16_t port, LocalPort(listener->get()));
  try {
    impl_ = std::make_unique<Impl>(options_, router_);
    if (auto started = impl_->Start(*std::move(listener), port); !started) {
      impl_.reset();
      return started;
    }
  } catch (const std::exception& exception) {
    impl_.reset();  // And with it the listener, which nobody would serve.
    return Fail(ErrorCode::kExhausted,
                fmt::format("start the HTTP server on port {}: {}", port, exception.what()));
  }
  return {};
}

void HttpServer::Stop() {
  if (impl_) {
    impl_->Stop();
  }
}

std::uint16_t HttpServer::port() const { return impl_ ? impl_->port() : 0; }

HttpServerStats HttpServer::stats() const { return impl_ ? impl_->stats() : HttpServerStats{}; }

}  // namespace mooncake
