#include "mooncake-common/src/net/rpc/connection.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace mooncake::rpc {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kKeepBytes = 256 * 1024;  // Buffers of an idle connection, at most.

void AppendFrame(ByteBuffer& to, const FrameHeader& header, std::span<const std::byte> body) {
  const std::size_t bytes = FrameBytes(body.size());
  const auto room = to.Room(bytes).first(bytes);
  EncodeFrameHeader(header, room.first<kFrameHeaderBytes>());
  std::ranges::copy(body, room.subspan(kFrameHeaderBytes).begin());
  std::ranges::fill(room.subspan(kFrameHeaderBytes + body.size()), std::byte{0});
  to.Commit(bytes);
}

}  // namespace

void Backoff::OnWelcome() {
  const MutexLock lock(mutex_);
  current_ = {};
  until_ = {};
}

void Backoff::OnFailure(const Error& why, Instant now) {
  const MutexLock lock(mutex_);
  current_ = std::min(most_, std::max(first_, current_ * 2));
  until_ = now + current_;
  why_ = why;
}

std::optional<Error> Backoff::Refusal(Instant now) const {
  const MutexLock lock(mutex_);
  if (now >= until_) {
    return std::nullopt;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - now);
  return Error{why_.code,
               fmt::format("{}; the next attempt is due in {} ms", why_.message, left.count())};
}

Connection::Connection(Reactor& reactor, Options options, std::shared_ptr<Backoff> backoff)
    : reactor_(reactor), options_(std::move(options)), backoff_(std::move(backoff)) {}

Connection::~Connection() {
  reactor_.CancelTimer(welcome_timer_);
  lane_.reset();  // Ends the calls, while everything they need is here.
}

Result<void> Connection::Dial() {
  auto fd = SocketConnect(options_.choice.address);
  if (!fd) {
    return std::unexpected(
        Error{fd.error().code, fmt::format("{}: {}", options_.name, fd.error().message)});
  }
  SetKeepAlive(fd->get());
  const std::vector<std::byte> hello = EncodeHello(options_.hello);
  AppendFrame(sending_,
              {.body_bytes = static_cast<std::uint32_t>(hello.size()), .method = kHelloMethod},
              hello);
  blocked_ = true;  // The reactor sends it once the connection stands.
  MC_TRY_ASSIGN(lane_, Lane::Create(reactor_, std::move(*fd), *this));
  const auto limit_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.welcome_timeout).count();
  welcome_timer_ = reactor_.After(
      options_.welcome_timeout, [weak = weak_from_this(), lane = lane_.get(), limit_ms] {
        // `self` keeps the lane.
        if (const auto self = weak.lock(); self && !self->welcome_) {
          lane->RequestClose(
              {ErrorCode::kUnavailable,
               fmt::format("{} did not answer within {} ms; is it reachable, and a mooncake?",
                           self->options_.name, limit_ms)});
        }
      });
  if (welcome_) {
    reactor_.CancelTimer(welcome_timer_);  // The reactor was faster than this thread.
  }
  return {};
}

Result<bool> Connection::Post(std::uint16_t method, std::span<const std::byte> body,
                              PendingCall& call) {
  if (body.size() > kMaxBodyBytes) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("call method {} of {} with {} bytes, more than {}; send less at once",
                            method, options_.name, body.size(), kMaxBodyBytes));
  }
  const MutexLock lock(mutex_);
  if (refusing_) {
    return false;
  }
  if (!queued_.empty() && queued_.size() + FrameBytes(body.size()) > options_.max_queued_bytes) {
    return Fail(ErrorCode::kExhausted,
                fmt::format("{} bytes wait to be sent to {}, which does not read them; try later",
                            queued_.size(), options_.name));
  }
  call.id = calls_.Insert(&call);
  AppendFrame(queued_,
              {.body_bytes = static_cast<std::uint32_t>(body.size()),
               .method = method,
               .flags = FrameFlags::kRequest,
               .id = call.id},
              body);
  ++queued_calls_;
  return true;
}

bool Connection::Forget(PendingCall& call) {
  const MutexLock lock(mutex_);
  return calls_.Take(call.id).has_value();
}

void Connection::End(PendingCall& call) {
  if (call.on_ended != nullptr) {
    call.on_ended(call);
  } else {
    call.ended.Notify();
  }
}

void Connection::TakeQueued() {
  if (!welcome_ || !sending_.empty()) {
    return;
  }
  const MutexLock lock(mutex_);
  std::swap(sending_, queued_);
  unanswered_ += std::exchange(queued_calls_, 0);
}

Result<LaneDriver::Progress> Connection::Drive(int fd) {
  const std::uint64_t expected_before = unanswered_;
  TakeQueued();
  Result<Progress> sent = Send(fd);
  if (!sent) {
    MC_TRY(ReceiveTheLast(fd));
    return std::unexpected(std::move(sent).error());
  }
  if (*sent == Progress::kMoved && expected_before == 0 && welcome_) {
    return sent;  // No answer can be here yet; the caller comes back.
  }
  MC_TRY_ASSIGN(const Progress received, Receive(fd));
  return received == Progress::kMoved ? received : *sent;
}

Result<void> Connection::ReceiveTheLast(int fd) {
  for (;;) {
    const Result<Progress> received = Receive(fd);
    if (received && *received == Progress::kMoved) {
      continue;
    }
    // That the connection is lost is known, and better said by who met it first.
    if (!received && received.error().code != ErrorCode::kUnavailable) {
      return std::unexpected(received.error());
    }
    return {};
  }
}

Result<LaneDriver::Progress> Connection::Send(int fd) {
  if (sending_.empty()) {
    blocked_ = false;
    return Progress::kIdle;
  }
  const IoOutcome outcome = SocketWrite(fd, std::as_const(sending_).data());
  if (outcome.kind == IoOutcome::Kind::kFailed) {
    return std::unexpected(SocketError(options_.name, outcome));
  }
  sending_.Consume(outcome.bytes);
  blocked_ = !sending_.empty();
  sending_.Shrink(kKeepBytes);
  return outcome.bytes > 0 ? Progress::kMoved : Progress::kIdle;
}

Result<LaneDriver::Progress> Connection::Receive(int fd) {
  // A frame gets memory as its bytes arrive, not as they are announced.
  const std::size_t wanted =
      std::max(kReadBytes, std::min(missing_bytes_, received_.size() + kReadBytes));
  const IoOutcome outcome = SocketRead(fd, received_.Room(wanted));
  if (outcome.kind == IoOutcome::Kind::kWouldBlock) {
    return Progress::kIdle;
  }
  if (outcome.kind != IoOutcome::Kind::kMoved) {
    return std::unexpected(SocketError(options_.name, outcome));
  }
  received_.Commit(outcome.bytes);
  missing_bytes_ = 0;
  for (;;) {
    const Result<Frame> frame = DecodeFrame(std::as_const(received_).data());
    if (!frame) {
      return Fail(ErrorCode::kMalformed,
                  fmt::format("{}: {}", options_.name, frame.error().message));
    }
    if (frame->bytes == 0) {
      if (received_.size() >= kFrameHeaderBytes) {
        missing_bytes_ = FrameBytes(frame->header.body_bytes) - received_.size();
      }
      break;
    }
    MC_TRY(TakeFrame(*frame));
    received_.Consume(frame->bytes);
  }
  received_.Shrink(kKeepBytes);
  return Progress::kMoved;
}

Result<void> Connection::TakeFrame(const Frame& frame) {
  if (frame.header.flags == FrameFlags::kRequest) {
    return Fail(ErrorCode::kMalformed, options_.name + " sent a request to its client");
  }
  if (!welcome_) {
    return TakeWelcome(frame);
  }
  PendingCall* call = nullptr;
  {
    const MutexLock lock(mutex_);
    call = calls_.Take(frame.header.id).value_or(nullptr);
  }
  if (unanswered_ > 0) {
    --unanswered_;
  }
  if (call == nullptr) {
    return {};  // Given up meanwhile.
  }
  if (frame.header.flags == FrameFlags::kError) {
    call->error = DecodeError(frame.body);
  } else {
    call->body.Append(frame.body);
  }
  End(*call);
  return {};
}

Result<void> Connection::TakeWelcome(const Frame& frame) {
  if (frame.header.method != kHelloMethod) {
    return Fail(ErrorCode::kMalformed, options_.name + " did not answer the hello first");
  }
  MC_TRY_ASSIGN(const Welcome welcome, DecodeWelcome(frame.body));
  if (welcome.refusal) {
    return Fail(welcome.refusal->code,
                fmt::format("{} refuses us: {}", options_.name, welcome.refusal->message));
  }
  welcome_ = true;
  reactor_.CancelTimer(welcome_timer_);
  options_.addresses->OnSuccess(options_.choice);
  backoff_->OnWelcome();
  return {};
}

bool Connection::HasPending() {
  if (!welcome_ || !sending_.empty() || unanswered_ > 0) {
    return true;
  }
  const MutexLock lock(mutex_);
  return !queued_.empty();
}

bool Connection::WantsWrite() {
  if (blocked_) {
    return true;
  }
  if (!welcome_) {
    return false;
  }
  const MutexLock lock(mutex_);
  return !queued_.empty();  // Queued until the welcome that this very turn brought.
}

void Connection::OnClosed(const Error& why) {
  if (!welcome_ && why.code != ErrorCode::kCancelled &&
      options_.addresses->OnFailure(options_.choice)) {
    backoff_->OnFailure(why, SteadyClock::Get().Now());
  }
  std::vector<PendingCall*> calls;
  {
    const MutexLock lock(mutex_);
    refusing_ = true;
    calls = calls_.TakeAll();
  }
  for (PendingCall* call : calls) {
    call->error = why;
    End(*call);
  }
}

}  // namespace mooncake::rpc
