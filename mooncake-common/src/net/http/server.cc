#include "mooncake-common/src/net/http/server.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadBytes = 16 << 10;
// After so many pipelined requests of one connection, or so many bytes of answers, others come
// first.
constexpr int kRequestsPerTurn = 16;
constexpr std::size_t kOutputBytesPerTurn = 256 << 10;
constexpr std::size_t kLingerBytes = 4 << 20;
constexpr Duration kAcceptRetry = std::chrono::milliseconds(100);

// For sockets that go anyway, and options that only help.
void Ignore(const error_code&) {}

Instant Now() { return SteadyClock::Get().Now(); }

class Connection;

}  // namespace

// All but the constructor, Stop() and the counters belongs to the server's thread.
class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, Router& router)
      : options_(options), router_(router), acceptor_(io_), accept_retry_(io_), drain_timer_(io_) {}

  [[nodiscard]] Result<void> Start(UniqueFd listener, std::uint16_t port);
  void Stop();

  std::uint16_t port() const { return port_; }
  HttpServerStats stats() const;

  const HttpServerOptions& options() const { return options_; }
  asio::io_context& io() { return io_; }
  std::array<char, kReadBytes>& scratch() { return scratch_; }
  bool draining() const { return draining_; }

  HttpResponse Dispatch(const HttpRequest& request) {
    requests_.fetch_add(1, std::memory_order_relaxed);
    return router_.Dispatch(request);
  }
  void CountRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }

  // The list of waiting connections, the longest first.
  using IdleList = std::list<Connection*>;
  IdleList::iterator EnterIdle(Connection* connection) {
    return idle_.insert(idle_.end(), connection);
  }
  void LeaveIdle(IdleList::iterator position) { idle_.erase(position); }
  void Forget(Connection* connection);

 private:
  void Accept();
  void OnAccept(const error_code& error, tcp::socket socket);
  bool CloseLongestIdle();
  void BeginDrain();
  void CloseAll();
  void Run();

  const HttpServerOptions options_;
  Router& router_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer accept_retry_;
  asio::steady_timer drain_timer_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  IdleList idle_;
  std::array<char, kReadBytes> scratch_{};  // Shared: no connection keeps it beyond one turn.
  bool draining_ = false;
  std::uint16_t port_ = 0;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> open_{0};
  Thread thread_;
  bool running_ = false;  // The owner's.
};

namespace {

// One client. It reads, or runs handlers, or writes, never two at once, so a client that does not
// take its answers is not read from.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(HttpServer::Impl& server, tcp::socket socket)
      : server_(server), socket_(std::move(socket)), timer_(server.io()) {}

  void Start() {
    error_code ignored;
    Ignore(socket_.set_option(tcp::no_delay(true), ignored));
    error_code error;
    if (socket_.non_blocking(true, error)) {
      return Close();
    }
    EndTurn();
  }

  void Close() {
    if (!socket_.is_open()) {
      return;
    }
    LeaveIdle();
    error_code ignored;
    Ignore(socket_.close(ignored));
    timer_.cancel();
    server_.Forget(this);
  }

 private:
  enum class Phase : std::uint8_t { kServing, kClosing, kLingering };

  void LeaveIdle() {
    if (idle_position_) {
      server_.LeaveIdle(*idle_position_);
      idle_position_.reset();
    }
  }

  void WaitReadable() {
    socket_.async_wait(tcp::socket::wait_read,
                       [self = shared_from_this()](const error_code& error) {
                         if (!error && self->socket_.is_open()) {
                           self->OnReadable();
                         }
                       });
  }

  void OnReadable() {
    auto& scratch = server_.scratch();
    error_code error;
    const std::size_t bytes = socket_.read_some(asio::buffer(scratch), error);
    if (error == asio::error::would_block || error == asio::error::interrupted) {
      return WaitReadable();
    }
    if (error) {
      return Close();  // The client is gone, or has said all: what it asked is answered.
    }
    if (phase_ == Phase::kLingering) {
      lingered_bytes_ += bytes;
      return lingered_bytes_ > kLingerBytes ? Close() : WaitReadable();
    }
    LeaveIdle();
    Turn(std::string_view(scratch.data(), bytes));
  }

  // Answers what is complete in `bytes`, up to a fair share.
  void Turn(std::string_view bytes) {
    for (int left = kRequestsPerTurn; !bytes.empty() && phase_ == Phase::kServing; --left) {
      if (left == 0 || output_.size() > kOutputBytesPerTurn) {
        input_.assign(bytes);
        break;
      }
      bytes.remove_prefix(TakeRequest(bytes));
    }
    Flush();
  }

  // Returns how many bytes it used.
  std::size_t TakeRequest(std::string_view bytes) {
    if (!parser_) {
      parser_.emplace(server_.options().limits);
    }
    const ParseProgress progress = parser_->Feed(bytes);
    switch (progress.state) {
      case ParseState::kNeedMore:
        if (parser_->TakeExpectContinue()) {
          output_ += "HTTP/1.1 100 Continue\r\n\r\n";
        }
        break;
      case ParseState::kComplete:
        Answer();
        break;
      case ParseState::kMalformed:
        Refuse(400, parser_->Explain());
        break;
      case ParseState::kHeaderTooLarge:
        Refuse(431, parser_->Explain());
        break;
      case ParseState::kBodyTooLarge:
        Refuse(413, parser_->Explain());
        break;
    }
    return progress.consumed_bytes;
  }

  void Answer() {
    AfterResponse after = parser_->After();
    const Result<HttpRequest> request = parser_->Take();
    if (!request) {
      return Refuse(400, request.error().message);
    }
    parser_.reset();
    const HttpResponse response = server_.Dispatch(*request);
    if (server_.draining()) {
      after = AfterResponse::kClose;
    }
    output_ += EncodeResponse(response, after, request->method != "HEAD");
    if (after == AfterResponse::kClose) {
      phase_ = Phase::kClosing;
    }
  }

  void Refuse(int status, std::string_view why) {
    server_.CountRefused();
    parser_.reset();
    output_ += EncodeResponse({.status = status,
                               .content_type = "text/plain; charset=utf-8",
                               .body = std::string(why) + "\n"},
                              AfterResponse::kClose, true);
    phase_ = Phase::kClosing;
  }

  void Flush() {
    while (written_bytes_ < output_.size()) {
      error_code error;
      written_bytes_ += socket_.write_some(
          asio::buffer(output_.data() + written_bytes_, output_.size() - written_bytes_), error);
      if (error == asio::error::would_block) {
        return WaitWritable();
      }
      if (error && error != asio::error::interrupted) {
        return Close();
      }
    }
    written_bytes_ = 0;
    writing_ = false;
    output_ = std::string();  // An idle connection keeps no buffers.
    EndTurn();
  }

  void WaitWritable() {
    if (!writing_) {
      writing_ = true;
      SetDeadline(server_.options().request_timeout);
    }
    socket_.async_wait(tcp::socket::wait_write,
                       [self = shared_from_this()](const error_code& error) {
                         if (!error && self->socket_.is_open()) {
                           self->Flush();
                         }
                       });
  }

  // All is written: go on with what was read before, wait for more, or end.
  void EndTurn() {
    if (phase_ == Phase::kClosing) {
      return Linger();
    }
    if (!input_.empty()) {
      return asio::post(server_.io(), [self = shared_from_this()] {
        if (self->socket_.is_open()) {
          self->Turn(std::exchange(self->input_, {}));
        }
      });
    }
    if (!parser_) {
      if (server_.draining()) {
        return Close();
      }
      receiving_ = false;
      idle_position_ = server_.EnterIdle(this);
      SetDeadline(server_.options().idle_timeout);
    } else if (!receiving_) {
      receiving_ = true;
      SetDeadline(server_.options().request_timeout);
    }
    WaitReadable();
  }

  void Linger() {
    phase_ = Phase::kLingering;
    error_code error;
    if (socket_.shutdown(tcp::socket::shutdown_send, error)) {
      return Close();
    }
    SetDeadline(server_.options().linger_timeout);
    WaitReadable();
  }

  // A deadline that moves back, as with each request, leaves the running timer alone.
  void SetDeadline(Duration from_now) {
    deadline_ = Now() + from_now;
    if (!timer_runs_until_ || deadline_ < *timer_runs_until_) {
      RunTimer();
    }
  }

  void RunTimer() {
    timer_runs_until_ = deadline_;
    timer_.expires_after(deadline_ - Now());
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->socket_.is_open()) {
        self->OnTimer();
      }
    });
  }

  void OnTimer() {
    timer_runs_until_.reset();
    if (Now() < deadline_) {
      return RunTimer();
    }
    if (phase_ == Phase::kServing && receiving_ && !writing_) {
      Refuse(408, "the request did not arrive in time");
      return Flush();
    }
    if (writing_) {
      server_.CountRefused();
    }
    Close();
  }

  HttpServer::Impl& server_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::optional<Instant> timer_runs_until_;
  Instant deadline_{};
  std::optional<HttpServer::Impl::IdleList::iterator> idle_position_;
  std::optional<RequestParser> parser_;  // Only while a request is incomplete.
  std::string input_;                    // Read, but left for a later turn.
  std::string output_;
  std::size_t written_bytes_ = 0;
  std::size_t lingered_bytes_ = 0;
  bool receiving_ = false;  // The deadline is that of a request which has begun.
  bool writing_ = false;    // The deadline is that of a response.
  Phase phase_ = Phase::kServing;
};

}  // namespace

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
      MC_LOG_ERROR("HTTP server on port {}: {}", port_, exception.what());
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

HttpServerStats HttpServer::Impl::stats() const {
  return {.requests = requests_.load(std::memory_order_relaxed),
          .refused = refused_.load(std::memory_order_relaxed),
          .connections = accepted_.load(std::memory_order_relaxed),
          .connections_now = open_.load(std::memory_order_relaxed)};
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
    MC_LOG_WARNING("HTTP server on port {}: accept: {}", port_, error.message());
    CloseLongestIdle();
    accept_retry_.expires_after(kAcceptRetry);
    accept_retry_.async_wait([this](const error_code& cancelled) {
      if (!cancelled && !draining_) {
        Accept();
      }
    });
    return;
  }
  if (connections_.size() >= options_.max_connections && !CloseLongestIdle()) {
    CountRefused();
    const std::string answer = EncodeResponse({.status = 503, .body = "too many connections\n"},
                                              AfterResponse::kClose, true);
    error_code ignored;
    Ignore(socket.non_blocking(true, ignored));
    (void)socket.write_some(asio::buffer(answer), ignored);
  } else {
    accepted_.fetch_add(1, std::memory_order_relaxed);
    auto connection = std::make_shared<Connection>(*this, std::move(socket));
    connections_.emplace(connection.get(), connection);
    open_.store(connections_.size(), std::memory_order_relaxed);
    connection->Start();
  }
  Accept();
}

bool HttpServer::Impl::CloseLongestIdle() {
  if (idle_.empty()) {
    return false;
  }
  idle_.front()->Close();
  return true;
}

void HttpServer::Impl::Forget(Connection* connection) {
  connections_.erase(connection);
  open_.store(connections_.size(), std::memory_order_relaxed);
  if (draining_ && connections_.empty()) {
    drain_timer_.cancel();  // With it the last work of io_ is gone, and its thread ends.
  }
}

void HttpServer::Impl::BeginDrain() {
  draining_ = true;
  error_code ignored;
  Ignore(acceptor_.close(ignored));
  accept_retry_.cancel();
  while (CloseLongestIdle()) {
  }
  if (connections_.empty()) {
    return;
  }
  drain_timer_.expires_after(options_.drain_timeout);
  drain_timer_.async_wait([this](const error_code& cancelled) {
    if (!cancelled) {
      CloseAll();
    }
  });
}

void HttpServer::Impl::CloseAll() {
  while (!connections_.empty()) {
    const std::shared_ptr<Connection> connection = connections_.begin()->second;
    connection->Close();
  }
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
    MC_TRY(impl_->Start(*std::move(listener), port));
  } catch (const std::exception& exception) {
    impl_.reset();
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
