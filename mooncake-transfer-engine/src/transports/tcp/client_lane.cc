#include "mooncake-transfer-engine/src/transports/tcp/client_lane.h"

#include <fmt/core.h>

#include <cerrno>
#include <utility>

#include "mooncake-transfer-engine/src/transports/tcp/socket_options.h"

namespace mooncake::transfer {
namespace {

constexpr std::size_t kSpareFrames = 4;
constexpr int kCallsPerDrive = 4;

Error BadLocalMemory(bool write) {
  return {ErrorCode::kInvalidArgument,
          write ? "send from local memory: it is not mapped, or not readable"
                : "receive into local memory: it is not mapped, or not writable"};
}

}  // namespace

ClientLane::ClientLane(Reactor& reactor, SliceLedger& ledger, TcpProtocol protocol,
                       const SocketAddress& address, Hooks hooks)
    : reactor_(reactor),
      ledger_(ledger),
      address_(address),
      opened_at_(SteadyClock::Get().Now()),
      hooks_(std::move(hooks)),
      stream_(protocol) {}

ClientLane::~ClientLane() {
  if (lane_) {
    lane_->Release();  // Whoever polled last has left without it.
  }
}

Result<std::shared_ptr<ClientLane>> ClientLane::Open(Reactor& reactor, SliceLedger& ledger,
                                                     TcpProtocol protocol,
                                                     const SocketAddress& address, Hooks hooks) {
  std::shared_ptr<ClientLane> opened(
      new ClientLane(reactor, ledger, protocol, address, std::move(hooks)));
  MC_TRY_ASSIGN(UniqueFd fd, SocketConnect(address));
  SetTcpSocketOptions(fd.get());
  MC_TRY_ASSIGN(opened->lane_, Lane::Create(reactor, std::move(fd), *opened));
  return opened;
}

bool ClientLane::CutOff() {
  ask_host_.store(true, std::memory_order_release);
  lane_->TryDrive();
  return host_silent_.exchange(false, std::memory_order_acq_rel);
}

void ClientLane::AskHost(int fd) {
  // With nothing on the way to it, the kernel asks of its own accord too seldom for who waits.
  if (connected_ && !std::exchange(asks_host_often_, true)) {
    SetKeepalive(fd, KeepalivePace::kOften);
  }
  host_silent_.store(HasPending() && HostIsSilent(fd), std::memory_order_release);
}

Result<LaneDriver::Progress> ClientLane::Drive(int fd) {
  const bool was_idle = stream_.empty();
  MC_TRY_ASSIGN(const bool sent, Send(fd));
  MC_TRY_ASSIGN(const bool received, Receive(fd));
  if (asks_host_often_ && received) {
    asks_host_often_ = false;
    SetKeepalive(fd, KeepalivePace::kSeldom);
  }
  if (ask_host_.load(std::memory_order_relaxed) &&
      ask_host_.exchange(false, std::memory_order_acquire)) {
    AskHost(fd);
  }
  if (was_idle && stream_.empty() && !sent) {
    MC_TRY(NoticeEnd(fd));
  }
  return sent || received ? Progress::kMoved : Progress::kIdle;
}

void ClientLane::FillWindow() {
  while (ledger_.HasUnclaimed() && stream_.HasRoom()) {
    std::unique_ptr<ClientFrame> frame;
    if (spare_frames_.empty()) {
      frame = std::make_unique<ClientFrame>();
    } else {
      frame = std::move(spare_frames_.back());
      spare_frames_.pop_back();
    }
    ledger_.Take(frame->claim);
    if (frame->claim.empty()) {
      spare_frames_.push_back(std::move(frame));
      return;
    }
    stream_.Add(std::move(frame));
  }
}

Result<bool> ClientLane::Send(int fd) {
  bool moved = false;
  bool careful = false;  // A page at a time, to find the one that is not there.
  for (int call = 0; call < kCallsPerDrive; ++call) {
    FillWindow();
    if (!stream_.HasUnsent()) {
      break;
    }
    IovList list;
    stream_.FillSend(list);
    const iovec page = list.FirstPage();
    const IoOutcome outcome = SocketWrite(fd, careful ? std::span(&page, 1) : list.entries());
    if (outcome.kind == IoOutcome::Kind::kWouldBlock) {
      break;
    }
    if (outcome.kind == IoOutcome::Kind::kFailed && outcome.error_number == EFAULT) {
      if (careful) {
        // Its request is on the way and promises bytes that nobody has.
        stream_.FailNextToSend(BadLocalMemory(/*write=*/true));
        first_is_blameless_ = true;
        return std::unexpected(BadLocalMemory(/*write=*/true));
      }
      careful = true;
      continue;
    }
    if (outcome.kind != IoOutcome::Kind::kMoved) {
      // An answer may have arrived before the end: a refusal, for one.
      MC_TRY(Receive(fd));
      return Ended(outcome);
    }
    NoteConnected();
    moved = true;
    ledger_.CountMoved(outcome.bytes);
    stream_.OnSent(outcome.bytes);
    if (!careful && outcome.bytes < list.bytes()) {
      break;
    }
  }
  return moved;
}

Result<bool> ClientLane::Receive(int fd) {
  bool moved = false;
  bool careful = false;
  for (int call = 0; call < kCallsPerDrive && stream_.AwaitsInput(); ++call) {
    IovList list;
    stream_.FillReceive(list);
    const iovec page = list.FirstPage();
    const IoOutcome outcome = SocketRead(fd, careful ? std::span(&page, 1) : list.entries());
    if (outcome.kind == IoOutcome::Kind::kWouldBlock) {
      break;
    }
    if (outcome.kind == IoOutcome::Kind::kFailed && outcome.error_number == EFAULT) {
      if (careful) {
        stream_.FailNextToReceive(BadLocalMemory(/*write=*/false));
      }
      careful = !careful;
      continue;
    }
    if (outcome.kind != IoOutcome::Kind::kMoved) {
      return std::unexpected(SocketError(address_.ToString(), outcome));
    }
    moved = true;
    ledger_.CountMoved(outcome.bytes);
    const Result<void> taken = stream_.OnReceived(outcome.bytes);
    FinishAnswered();
    if (!taken) {
      first_is_blameless_ = taken.error().code == ErrorCode::kRejected;
      return std::unexpected(taken.error());
    }
    if (!careful && outcome.bytes < list.bytes()) {
      break;
    }
  }
  return moved;
}

Result<void> ClientLane::NoticeEnd(int fd) {
  std::byte unexpected_byte{};
  const IoOutcome outcome = SocketRead(fd, std::span(&unexpected_byte, 1));
  switch (outcome.kind) {
    case IoOutcome::Kind::kWouldBlock:
      return {};
    case IoOutcome::Kind::kMoved:
      return Fail(ErrorCode::kMalformed,
                  fmt::format("{} sent what nobody asked for", address_.ToString()));
    case IoOutcome::Kind::kClosed:
    case IoOutcome::Kind::kFailed:
      break;
  }
  return Ended(outcome);
}

std::unexpected<Error> ClientLane::Ended(const IoOutcome& outcome) {
  if (outcome.kind == IoOutcome::Kind::kClosed || outcome.error_number == ECONNRESET ||
      outcome.error_number == EPIPE) {
    NoteConnected();  // It was, though nothing had been sent.
  }
  return std::unexpected(SocketError(address_.ToString(), outcome));
}

void ClientLane::NoteConnected() {
  if (!std::exchange(connected_, true)) {
    hooks_.on_connected();
  }
}

bool ClientLane::FinishAnswered() {
  bool any = false;
  while (std::unique_ptr<ClientFrame> frame = stream_.TakeAnswered()) {
    any = true;
    ledger_.Finish(frame->claim, frame->failures);
    if (spare_frames_.size() < kSpareFrames) {
      frame->claim.Clear();
      spare_frames_.push_back(std::move(frame));
    }
  }
  if (any && reactor_.InReactorThread()) {
    hooks_.on_ended();
  }
  return any;
}

bool ClientLane::Suspect(Claim& first) const {
  if (!first.suspected_at) {
    first.suspected_at = SteadyClock::Get().Now();
    return false;
  }
  return opened_at_ > *first.suspected_at;
}

void ClientLane::OnClosed(const Error& why) {
  bool may_be_the_reason = connected_ && !first_is_blameless_;
  for (std::unique_ptr<ClientFrame>& frame : stream_.TakeAll()) {
    if (std::exchange(may_be_the_reason, false) && Suspect(frame->claim)) {
      frame->failures.clear();
      for (std::size_t i = 0; i < frame->claim.pieces().size(); ++i) {
        frame->failures.push_back({i, why});
      }
    }
    ledger_.Return(frame->claim, frame->failures);
  }
  closed_.store(true, std::memory_order_release);
  hooks_.on_closed(!connected_, why);
}

}  // namespace mooncake::transfer
