#include "mooncake-common/src/net/rpc/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "mooncake-common/src/base/log.h"

namespace mooncake::rpc {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kKeepBytes = 64 * 1024;  // Buffers of an idle connection, at most.
constexpr int kReadsPerTurn = 16;              // Then other connections have their turn.

}  // namespace

void ReplyWriter::Fail(const Error& error) {
  out_.Truncate(body_begin_);
  const std::size_t bytes = ErrorBodyBytes(error);
  EncodeError(error, out_.Room(bytes).first(bytes));
  out_.Commit(bytes);
  failed_ = true;
}

void ReplyWriter::Later(RpcStep step) { later_ = std::make_unique<RpcStep>(std::move(step)); }

Session::Session(Reactor& reactor, UniqueFd fd, PeerInfo peer, ServerShared& shared,
                 SessionOrder& order, std::function<void(Session&)> on_closed)
    : reactor_(reactor),
      fd_(std::move(fd)),
      peer_(std::move(peer)),
      shared_(shared),
      order_(order),
      place_(order.strangers.insert(order.strangers.end(), this)),
      on_closed_(std::move(on_closed)) {
  SetKeepAlive(fd_.get());
  shared_.accepted.fetch_add(1, std::memory_order_relaxed);
  shared_.open.fetch_add(1, std::memory_order_relaxed);
}

Session::~Session() { Close(RpcClose::kServerStopped); }

Result<void> Session::Start() {
  interest_ = EPOLLIN;
  MC_TRY_ASSIGN(watch_, reactor_.Watch(fd_.get(), interest_,
                                       [this](std::uint32_t events) { OnEvents(events); }));
  hello_timer_ = reactor_.After(shared_.hello_timeout, [this] {
    if (!greeted_) {
      Close(RpcClose::kHelloTimeout);
    }
  });
  return {};
}

void Session::Drain() {
  if (!fd_) {
    return;
  }
  ending_ = ending_.value_or(RpcClose::kServerStopped);
  later_.clear();
  Flush();
}

void Session::Close(RpcClose reason) {
  if (!fd_) {
    return;
  }
  reactor_.Unwatch(watch_);
  reactor_.CancelTimer(hello_timer_);
  reactor_.CancelTimer(step_timer_);
  fd_.Reset();
  later_.clear();
  (greeted_ ? order_.known : order_.strangers).erase(place_);
  shared_.open.fetch_sub(1, std::memory_order_relaxed);
  shared_.closed[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  if (reason != RpcClose::kPeerClosed && reason != RpcClose::kServerStopped) {
    LogFold& fold = shared_.folds[static_cast<std::size_t>(reason)];
    if (const auto times = fold.Admit(SteadyClock::Get().Now())) {
      MC_LOG_WARNING("rpc: closed the connection of {} ({}): {} ({} times)", peer_.address,
                     peer_.software, RpcCloseName(reason), times);
    }
  }
  on_closed_(*this);
}

void Session::OnEvents(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    FlushAndResume();
  }
  if (fd_ && !paused_ && !ending_ && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
    ReadBurst();
  } else if (fd_ && (events & (EPOLLERR | EPOLLHUP)) != 0) {
    Close(RpcClose::kIoError);
  }
  if (fd_) {
    FlushAndResume();
  }
}

void Session::FlushAndResume() {
  Flush();
  while (fd_ && paused_ && out_.size() <= shared_.max_unread_bytes / 2 &&
         later_.size() < kMaxLater) {
    paused_ = false;
    Process();  // What had arrived before the pause; epoll does not speak of it.
    if (fd_) {
      Flush();
    }
  }
  if (fd_) {
    StepSoon();
  }
}

void Session::ReadBurst() {
  for (int i = 0; i < kReadsPerTurn && !paused_ && !ending_; ++i) {
    // A frame gets memory as its bytes arrive, not as they are announced.
    const std::size_t wanted =
        std::max(kReadBytes, std::min(missing_bytes_, in_.size() + kReadBytes));
    const auto room = in_.Room(wanted);
    const IoOutcome outcome = SocketRead(fd_.get(), room);
    if (outcome.kind == IoOutcome::Kind::kWouldBlock) {
      return;
    }
    if (outcome.kind != IoOutcome::Kind::kMoved) {
      Close(outcome.kind == IoOutcome::Kind::kClosed ? RpcClose::kPeerClosed : RpcClose::kIoError);
      return;
    }
    in_.Commit(outcome.bytes);
    std::list<Session*>& alike = greeted_ ? order_.known : order_.strangers;
    alike.splice(alike.end(), alike, place_);
    Process();
    if (!fd_ || outcome.bytes < room.size()) {
      return;  // The socket is empty, most likely; if not, epoll says so.
    }
  }
}

void Session::Process() {
  missing_bytes_ = 0;
  while (!ending_) {
    if (MustPause()) {
      Flush();
      if (!fd_) {
        return;
      }
      if (MustPause()) {
        paused_ = true;
        shared_.pauses.fetch_add(1, std::memory_order_relaxed);
        break;
      }
    }
    const Result<Frame> frame = DecodeFrame(in_.data());
    if (!frame) {
      Malformed(frame.error());
      return;
    }
    if (!greeted_ && in_.size() >= kFrameHeaderBytes &&
        (frame->header.method != kHelloMethod || frame->header.body_bytes > kMaxHelloBytes)) {
      Close(RpcClose::kHelloExpected);
      return;
    }
    if (frame->bytes == 0) {
      if (in_.size() >= kFrameHeaderBytes) {
        missing_bytes_ = FrameBytes(frame->header.body_bytes) - in_.size();
      }
      break;
    }
    if (frame->header.flags != FrameFlags::kRequest) {
      Malformed({ErrorCode::kMalformed, "a client sent a reply"});
      return;
    }
    if (!greeted_) {
      if (!Greet(*frame)) {
        return;
      }
    } else {
      Answer(*frame);
    }
    in_.Consume(frame->bytes);
  }
  in_.Shrink(kKeepBytes);
}

bool Session::MustPause() const {
  return out_.size() > shared_.max_unread_bytes || later_.size() >= kMaxLater;
}

bool Session::Greet(const Frame& frame) {
  const Result<Hello> hello = DecodeHello(frame.body);
  if (!hello) {
    Close(RpcClose::kHelloExpected);
    return false;
  }
  peer_.software = hello->software;
  peer_.features = hello->features;
  const Welcome welcome = AnswerHello(*hello, shared_.ours);
  Reply(frame.header, EncodeWelcome(welcome));
  if (welcome.refusal) {
    MC_LOG_WARNING("rpc: refused {}: {}", peer_.address, welcome.refusal->message);
    ending_ = welcome.refusal->code == ErrorCode::kPermissionDenied ? RpcClose::kWrongToken
                                                                    : RpcClose::kVersionMismatch;
    return true;
  }
  greeted_ = true;
  order_.known.splice(order_.known.end(), order_.strangers, place_);
  reactor_.CancelTimer(hello_timer_);
  return true;
}

void Session::Answer(const Frame& frame) {
  shared_.requests.fetch_add(1, std::memory_order_relaxed);
  const std::uint16_t method = frame.header.method;
  std::unique_ptr<RpcStep> later;
  const bool answered = AnswerBy(frame.header, [&](ReplyWriter& reply) {
    if (method >= shared_.handlers.size() || !shared_.handlers[method]) {
      shared_.unknown_methods.fetch_add(1, std::memory_order_relaxed);
      reply.Fail({ErrorCode::kNotSupported,
                  fmt::format("\"{}\" knows no method {}; is it older than its caller?",
                              shared_.ours.software, method)});
      return true;
    }
    shared_.handlers[method](frame.body, reply, peer_);
    later = std::move(reply.later_);
    return later == nullptr;
  });
  if (!answered) {
    later_.push_back({frame.header, std::move(later)});
  }
}

// A call that throws (no memory for its answer, a library that does) has not answered: its caller
// hears so, and the server goes on.
template <typename Call>
bool Session::AnswerBy(FrameHeader request, Call call) {
  const std::size_t begin = out_.size();
  (void)out_.Room(kFrameHeaderBytes);
  out_.Commit(kFrameHeaderBytes);
  ReplyWriter reply(out_, begin + kFrameHeaderBytes);
  std::optional<std::string> thrown;
  try {
    if (!call(reply)) {
      out_.Truncate(begin);
      return false;
    }
  } catch (const std::exception& exception) {
    thrown = exception.what();
  } catch (...) {
    thrown = "something that is no std::exception";
  }
  if (thrown) {
    shared_.thrown.fetch_add(1, std::memory_order_relaxed);
    MC_LOG_ERROR("rpc: the handler of method {} threw: {}", request.method, *thrown);
    reply.Fail({ErrorCode::kInternal, fmt::format("\"{}\" failed while answering method {}: {}",
                                                  shared_.ours.software, request.method, *thrown)});
  }
  if (const std::size_t bytes = out_.size() - begin - kFrameHeaderBytes; bytes > kMaxBodyBytes) {
    reply.Fail({ErrorCode::kExhausted,
                fmt::format("the answer of method {} has {} bytes, more than {}; ask for less",
                            request.method, bytes, kMaxBodyBytes)});
  }
  FinishReply({.body_bytes = 0,
               .method = request.method,
               .flags = reply.failed_ ? FrameFlags::kError : FrameFlags::kReply,
               .id = request.id},
              begin);
  return true;
}

void Session::StepSoon() {
  if (later_.empty() || step_timer_ != TimerId::kNone || out_.size() > shared_.max_unread_bytes) {
    return;
  }
  step_timer_ = reactor_.After(Duration::zero(), [this] {
    step_timer_ = TimerId::kNone;
    if (!later_.empty()) {
      Step();
    }
  });
}

void Session::Step() {
  if (AnswerBy(later_.front().request, std::ref(*later_.front().step))) {
    later_.pop_front();
  }
  FlushAndResume();
}

void Session::Reply(const FrameHeader& header, std::span<const std::byte> body) {
  const std::size_t begin = out_.size();
  (void)out_.Room(kFrameHeaderBytes);
  out_.Commit(kFrameHeaderBytes);
  out_.Append(body);
  FinishReply(
      {.body_bytes = 0, .method = header.method, .flags = FrameFlags::kReply, .id = header.id},
      begin);
}

void Session::FinishReply(FrameHeader header, std::size_t begin) {
  const std::size_t body_bytes = out_.size() - begin - kFrameHeaderBytes;
  header.body_bytes = static_cast<std::uint32_t>(body_bytes);
  EncodeFrameHeader(header, out_.data().subspan(begin).first<kFrameHeaderBytes>());
  const std::size_t padding = FramePadding(body_bytes);
  std::ranges::fill(out_.Room(padding).first(padding), std::byte{0});
  out_.Commit(padding);
}

void Session::Flush() {
  while (!out_.empty()) {
    const IoOutcome outcome = SocketWrite(fd_.get(), std::as_const(out_).data());
    if (outcome.kind == IoOutcome::Kind::kFailed) {
      Close(RpcClose::kIoError);
      return;
    }
    if (outcome.kind == IoOutcome::Kind::kWouldBlock) {
      break;
    }
    out_.Consume(outcome.bytes);
  }
  out_.Shrink(kKeepBytes);
  if (out_.empty() && ending_) {
    Close(*ending_);
    return;
  }
  UpdateInterest();
}

void Session::Malformed(const Error& why) {
  MC_LOG_WARNING("rpc: {}: {}", peer_.address, why.message);
  Close(RpcClose::kMalformedFrame);
}

void Session::UpdateInterest() {
  const std::uint32_t wanted = (paused_ || ending_ ? 0U : static_cast<std::uint32_t>(EPOLLIN)) |
                               (out_.empty() ? 0U : static_cast<std::uint32_t>(EPOLLOUT));
  if (wanted != interest_) {
    interest_ = wanted;
    reactor_.Modify(watch_, wanted);
  }
}

}  // namespace mooncake::rpc
