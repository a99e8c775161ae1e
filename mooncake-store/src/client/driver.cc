#include "mooncake-store/src/client/driver.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/parking.h"

namespace mooncake::store {
namespace {

using transfer::BatchId;
using transfer::SegmentId;
using transfer::TransferRequest;
using transfer::TransferState;

// Up to here a move is made in one go: even at a tenth of a slow network's speed it ends long
// before a lease does.
constexpr std::uint64_t kShortMoveBytes = 4ULL << 20;

Instant Now() { return SteadyClock::Get().Now(); }

// Where answers of calls that travel in the background arrive. Outlives the driver's turn when an
// answer is late.
struct Mailbox {
  struct Answer {
    std::uint32_t tag = 0;
    std::uint32_t call = 0;  // Of calls with one tag, which: a forgotten one may still be answered.
    Result<void> outcome;
    std::vector<std::byte> body;
  };
  Event arrived;
  Mutex mutex;
  std::vector<Answer> answers MC_GUARDED_BY(mutex);
};

// What threads reuse from operation to operation.
struct Workspace {
  CallContext context;
  std::vector<TransferRequest> requests;
  std::vector<std::uint32_t> piece_of;  // The piece of each request.
  std::vector<PieceFailure> failures;
};

Workspace& WorkspaceOfThread() {
  thread_local Workspace workspace;
  return workspace;
}

}  // namespace

// One run of one operation.
class Driver::Turn {
 public:
  Turn(Driver& driver, Operation& operation)
      : driver_(driver), operation_(operation), work_(WorkspaceOfThread()) {}

  void Run() {
    for (;;) {
      const Action action = operation_.Next(Now());
      switch (action.kind) {
        case ActionKind::kDone:
          return;
        case ActionKind::kCall:
          calls_.push_back({.tag = action.tag,
                            .number = next_call_++,
                            .deadline = action.until,
                            .call = action.call,
                            .started = {},
                            .travels = false});
          break;
        case ActionKind::kForget:
          Forget(action.tag);
          break;
        case ActionKind::kTransfer:
          moves_.push_back({.tag = action.tag, .batch = action.transfers});
          break;
        case ActionKind::kWait:
          Await(action.until);
          break;
      }
    }
  }

 private:
  struct PendingCall {
    std::uint32_t tag = 0;
    std::uint32_t number = 0;
    Instant deadline{};
    MasterCall call;
    rpc::RpcClient::Started started;
    bool travels = false;  // Sent in the background.
  };
  struct PendingMove {
    std::uint32_t tag = 0;
    TransferBatch* batch = nullptr;
  };

  // Something is pending, or the operation only waits for time to pass.
  void Await(Instant until) {
    if (moves_.empty() && calls_.size() == 1 && !calls_.front().travels) {
      CallHere();
      return;
    }
    for (PendingCall& call : calls_) {
      if (!call.travels) {
        Send(call);
      }
    }
    if (!moves_.empty()) {
      Move(until);
      Collect();
      return;
    }
    if (!mailbox_) {
      mailbox_ = std::make_shared<Mailbox>();
    }
    static_cast<void>(mailbox_->arrived.Wait(until));
    Collect();
  }

  void CallHere() {
    const PendingCall call = std::move(calls_.front());
    calls_.clear();
    Report(call.tag, driver_.master_.Call(call.call, call.deadline, work_.context));
  }

  void Send(PendingCall& call) {
    if (!mailbox_) {
      mailbox_ = std::make_shared<Mailbox>();
    }
    call.travels = true;
    call.started = driver_.master_.Start(
        call.call, call.deadline, work_.context,
        [mailbox = mailbox_, tag = call.tag,
         number = call.number](Result<std::span<const std::byte>> reply) {
          Mailbox::Answer answer{.tag = tag, .call = number, .outcome = {}, .body = {}};
          if (reply) {
            answer.body.assign(reply->begin(), reply->end());
          } else {
            answer.outcome = std::unexpected(std::move(reply).error());
          }
          {
            const MutexLock lock(mailbox->mutex);
            mailbox->answers.push_back(std::move(answer));
          }
          mailbox->arrived.Notify();
        });
  }

  // Reports the answers that have arrived.
  void Collect() {
    if (!mailbox_ || !mailbox_->arrived.IsSet()) {
      return;
    }
    mailbox_->arrived.Reset();
    std::vector<Mailbox::Answer> answers;
    {
      const MutexLock lock(mailbox_->mutex);
      answers.swap(mailbox_->answers);
    }
    for (Mailbox::Answer& answer : answers) {
      const auto call = std::ranges::find_if(calls_, [&](const PendingCall& pending) {
        return pending.travels && pending.number == answer.call;
      });
      if (call == calls_.end()) {
        continue;  // Forgotten meanwhile.
      }
      const MasterCall asked = call->call;
      calls_.erase(call);
      Report(answer.tag, answer.outcome ? MasterLink::Take(asked, answer.body, work_.context)
                                        : std::move(answer.outcome));
    }
  }

  void Report(std::uint32_t tag, Result<void> outcome) {
    if (outcome) {
      operation_.OnReply(tag, Now());
    } else {
      operation_.OnCallFailed(tag, outcome.error(), Now());
    }
  }

  void Forget(std::uint32_t tag) {
    const auto call = std::ranges::find(calls_, tag, &PendingCall::tag);
    if (call != calls_.end()) {
      if (call->travels) {
        call->started.Cancel();
      }
      calls_.erase(call);
    }
  }

  // Moves the oldest transfer as far as it gets by `until`; reports it when it has ended.
  void Move(Instant until) {
    const PendingMove move = moves_.front();
    if (!running_) {
      if (Prepare(*move.batch)) {
        EndMove(move);
        return;
      }
    }
    const Duration left =
        until == Instant::max() ? Duration::zero() : std::max<Duration>(until - Now(), Duration(1));
    const auto waited = driver_.engine_.Wait(*running_, left);
    if (!waited && !AllTerminal()) {
      return;  // It goes on; the operation has something to do meanwhile.
    }
    TakeFailures();
    EndMove(move);
  }

  void EndMove(const PendingMove& move) {
    moves_.erase(moves_.begin());
    operation_.OnTransfersDone(move.tag, work_.failures, Now());
    work_.failures.clear();
  }

  // Turns pieces into requests and moves them in one go if they are short. True when the transfer
  // has ended.
  bool Prepare(const TransferBatch& batch) {
    work_.requests.clear();
    work_.piece_of.clear();
    work_.failures.clear();
    std::uint64_t bytes = 0;
    const auto opcode =
        batch.opcode == TransferOpcode::kRead ? transfer::Opcode::kRead : transfer::Opcode::kWrite;
    for (std::uint32_t i = 0; i < batch.pieces.size(); ++i) {
      const TransferPiece& piece = batch.pieces[i];
      const auto segment = Open(*piece.segment);
      if (!segment) {
        work_.failures.push_back({.piece = i, .why = segment.error()});
        continue;
      }
      work_.requests.push_back({.opcode = opcode,
                                .local = piece.local,
                                .segment = *segment,
                                .remote_address = piece.address,
                                .length_bytes = piece.length_bytes});
      work_.piece_of.push_back(i);
      bytes += piece.length_bytes;
    }
    if (work_.requests.empty()) {
      return true;
    }
    // After a failure the same pieces are moved again as a batch, which tells of each what became
    // of it.
    if (bytes <= kShortMoveBytes && driver_.engine_.Transfer(work_.requests)) {
      return true;
    }
    auto begun = driver_.engine_.AllocateBatch(work_.requests.size());
    if (!begun) {
      FailAll(begun.error());
      return true;
    }
    if (auto submitted = driver_.engine_.Submit(*begun, work_.requests); !submitted) {
      static_cast<void>(driver_.engine_.FreeBatch(*begun));
      SubmitOneByOne();
      return true;
    }
    running_ = *begun;
    return false;
  }

  // A batch is refused as a whole, for one request that cannot be: find out which.
  void SubmitOneByOne() {
    for (std::size_t i = 0; i < work_.requests.size(); ++i) {
      if (auto moved = driver_.engine_.Transfer(std::span(work_.requests).subspan(i, 1)); !moved) {
        work_.failures.push_back({.piece = work_.piece_of[i], .why = std::move(moved).error()});
      }
    }
  }

  [[nodiscard]] bool AllTerminal() {
    for (std::size_t i = 0; i < work_.requests.size(); ++i) {
      const auto status = driver_.engine_.TaskStatus(*running_, i);
      if (status && !transfer::IsTerminal(status->state)) {
        return false;
      }
    }
    return true;
  }

  void TakeFailures() {
    for (std::size_t i = 0; i < work_.requests.size(); ++i) {
      const auto status = driver_.engine_.TaskStatus(*running_, i);
      if (status && status->state == TransferState::kCompleted) {
        continue;
      }
      auto why = driver_.engine_.TaskError(*running_, i);
      work_.failures.push_back(
          {.piece = work_.piece_of[i], .why = why ? *std::move(why) : std::move(why).error()});
    }
    static_cast<void>(driver_.engine_.FreeBatch(*running_));
    running_.reset();
  }

  void FailAll(const Error& why) {
    for (const std::uint32_t piece : work_.piece_of) {
      work_.failures.push_back({.piece = piece, .why = why});
    }
  }

  Result<SegmentId> Open(const PeerSegment& segment) {
    // The handle is the engine's id plus one: zero stands for "not opened yet".
    if (const std::uint64_t handle = segment.driver_handle.load(std::memory_order_acquire)) {
      return handle - 1;
    }
    MC_TRY_ASSIGN(const SegmentId id, driver_.engine_.OpenSegment(segment.info.te_endpoint));
    segment.driver_handle.store(id + 1, std::memory_order_release);
    return id;
  }

  Driver& driver_;
  Operation& operation_;
  Workspace& work_;
  std::uint32_t next_call_ = 0;
  std::vector<PendingCall> calls_;
  std::vector<PendingMove> moves_;
  std::optional<BatchId> running_;  // The oldest move's.
  std::shared_ptr<Mailbox> mailbox_;
};

void Driver::Run(Operation& operation) { Turn(*this, operation).Run(); }

}  // namespace mooncake::store
