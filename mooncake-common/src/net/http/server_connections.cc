#include "mooncake-common/src/net/http/server_connections.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace mooncake {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// After so many pipelined requests of one connection, or so many bytes of answers, others come
// first.
constexpr int kRequestsPerTurn = 16;
constexpr std::size_t kOutputBytesPerTurn = 256 << 10;
constexpr std::size_t kLingerBytes = 4 << 20;

// For sockets that go anyway, and options that only help.
void Ignore(const error_code&) {}

Instant Now() { return SteadyClock::Get().Now(); }

}  // namespace

// One client. It reads, or runs handlers and their steps, or writes, never two at once, so a client
// that does not take its answers is not read from.
class HttpConnections::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(HttpConnections& all, tcp::socket socket)
      : all_(all), socket_(std::move(socket)), timer_(all.io_) {}

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
    steps_ = nullptr;  // What they refer to may end before this does.
    all_.Forget(this);
  }

 private:
  enum class Phase : std::uint8_t { kServing, kClosing, kLingering };

  void LeaveIdle() {
    if (idle_position_) {
      all_.idle_.erase(*idle_position_);
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
    auto& scratch = all_.scratch_;
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
      if (left == 0 || steps_ || output_.size() > kOutputBytesPerTurn) {
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
      parser_.emplace(all_.options_.limits);
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
    after_ = parser_->After();
    const Result<HttpRequest> request = parser_->Take();
    if (!request) {
      return Refuse(400, request.error().message);
    }
    parser_.reset();
    receiving_ = false;  // What follows it is another request, with its own time.
    send_body_ = request->method != "HEAD";
    HttpAnswer answer = all_.Dispatch(*request);
    if (auto* steps = std::get_if<HttpSteps>(&answer)) {
      steps_ = std::move(*steps);
    } else {
      Respond(std::get<HttpResponse>(answer));
    }
  }

  void Respond(const HttpResponse& response) {
    const AfterResponse after = all_.draining_ ? AfterResponse::kClose : after_;
    output_ += EncodeResponse(response, after, send_body_);
    if (after == AfterResponse::kClose) {
      phase_ = Phase::kClosing;
    }
  }

  // Nothing is read meanwhile, so a client that has left is noticed when its answer is written.
  void Step() {
    if (const std::optional<HttpResponse> response = steps_()) {
      steps_ = nullptr;
      Respond(*response);
      return Flush();
    }
    Soon([](Connection& self) { self.Step(); });
  }

  // After what is ready for others.
  void Soon(void (*what)(Connection& self)) {
    asio::post(all_.io_, [self = shared_from_this(), what] {
      if (self->socket_.is_open()) {
        what(*self);
      }
    });
  }

  void Refuse(int status, std::string_view why) {
    all_.CountRefused();
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
      SetDeadline(all_.options_.request_timeout);
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
    if (steps_) {
      return Soon([](Connection& self) { self.Step(); });
    }
    if (!input_.empty()) {
      return Soon([](Connection& self) { self.Turn(std::exchange(self.input_, {})); });
    }
    if (!parser_) {
      if (all_.draining_) {
        return Close();
      }
      receiving_ = false;
      idle_position_ = all_.idle_.insert(all_.idle_.end(), this);
      SetDeadline(all_.options_.idle_timeout);
    } else if (!receiving_) {
      receiving_ = true;
      SetDeadline(all_.options_.request_timeout);
    }
    WaitReadable();
  }

  void Linger() {
    phase_ = Phase::kLingering;
    error_code error;
    if (socket_.shutdown(tcp::socket::shutdown_send, error)) {
      return Close();
    }
    SetDeadline(all_.options_.linger_timeout);
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
    if ((steps_ || !input_.empty()) && !writing_) {
      deadline_ = Now() + all_.options_.request_timeout;  // Nobody but we is late.
    }
    if (Now() < deadline_) {
      return RunTimer();
    }
    if (phase_ == Phase::kServing && receiving_ && !writing_) {
      Refuse(408, "the request did not arrive in time");
      return Flush();
    }
    if (writing_) {
      all_.CountRefused();
    }
    Close();
  }

  HttpConnections& all_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::optional<Instant> timer_runs_until_;
  Instant deadline_{};
  std::optional<std::list<Connection*>::iterator> idle_position_;
  std::optional<RequestParser> parser_;  // Only while a request is incomplete.
  std::string input_;                    // Read, but left for a later turn.
  HttpSteps steps_;                      // Of the answer that is being made.
  AfterResponse after_{};                // Of the request that is being answered.
  bool send_body_ = true;
  std::string output_;
  std::size_t written_bytes_ = 0;
  std::size_t lingered_bytes_ = 0;
  bool receiving_ = false;  // The deadline is that of a request which has begun.
  bool writing_ = false;    // The deadline is that of a response.
  Phase phase_ = Phase::kServing;
};

void HttpConnections::Take(tcp::socket socket) {
  if (open_.size() >= options_.max_connections && !CloseLongestIdle()) {
    CountRefused();
    const std::string answer = EncodeResponse({.status = 503, .body = "too many connections\n"},
                                              AfterResponse::kClose, true);
    error_code ignored;
    Ignore(socket.non_blocking(true, ignored));
    (void)socket.write_some(asio::buffer(answer), ignored);
    return;
  }
  accepted_.fetch_add(1, std::memory_order_relaxed);
  auto connection = std::make_shared<Connection>(*this, std::move(socket));
  open_.emplace(connection.get(), connection);
  open_count_.store(open_.size(), std::memory_order_relaxed);
  connection->Start();
}

HttpAnswer HttpConnections::Dispatch(const HttpRequest& request) {
  requests_.fetch_add(1, std::memory_order_relaxed);
  return router_.Dispatch(request);
}

void HttpConnections::Forget(Connection* connection) {
  open_.erase(connection);
  open_count_.store(open_.size(), std::memory_order_relaxed);
  TellIfNoneLeft();
}

bool HttpConnections::CloseLongestIdle() {
  if (idle_.empty()) {
    return false;
  }
  idle_.front()->Close();
  return true;
}

void HttpConnections::Drain(std::function<void()> on_none_left) {
  draining_ = true;
  while (CloseLongestIdle()) {
  }
  on_none_left_ = std::move(on_none_left);
  TellIfNoneLeft();
}

void HttpConnections::TellIfNoneLeft() {
  if (open_.empty() && on_none_left_) {
    std::exchange(on_none_left_, nullptr)();
  }
}

void HttpConnections::CloseAll() {
  while (!open_.empty()) {
    const std::shared_ptr<Connection> connection = open_.begin()->second;
    connection->Close();
  }
}

HttpServerStats HttpConnections::stats() const {
  return {.requests = requests_.load(std::memory_order_relaxed),
          .refused = refused_.load(std::memory_order_relaxed),
          .connections = accepted_.load(std::memory_order_relaxed),
          .connections_now = open_count_.load(std::memory_order_relaxed)};
}

}  // namespace mooncake
