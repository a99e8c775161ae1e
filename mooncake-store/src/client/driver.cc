#include "mooncake-store/src/client/driver.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "mooncake-store/src/client/pending_calls.h"

namespace mooncake::store {
namespace {

using transfer::BatchId;
using transfer::SegmentId;
using transfer::TransferRequest;
using transfer::TransferState;

// Up to here a move is made in one go: even at a tenth of a slow network's speed it ends long
// before a lease does. If it does not, for a peer that stands still, it is begun again as a batch,
// beside which leases are renewed.
constexpr std::uint64_t kShortMoveBytes = 4ULL << 20;
constexpr Duration kShortMoveTime = std::chrono::milliseconds(500);

// How often it is looked for the answer to a call beside a transfer: a renewal, once in half a
// lease.
constexpr Duration kAnswerPause = std::chrono::milliseconds(5);

Instant Now() { return SteadyClock::Get().Now(); }

// An owner of segments that could not be opened.
struct Unopened {
  std::string_view endpoint;
  Error why;
};

// What threads reuse from operation to operation.
struct Workspace {
  CallContext context;
  std::vector<TransferRequest> requests;
  std::vector<std::uint32_t> piece_of;  // The piece of each request.
  std::vector<Unopened> unopened;       // Of the transfer that is being prepared.
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
          SendHeld();
          held_ = action;
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
  struct PendingMove {
    std::uint32_t tag = 0;
    TransferBatch* batch = nullptr;
  };

  // Something is pending, or the operation only waits for time to pass.
  void Await(Instant until) {
    // The only thing that is going on: asked by this thread, unless it is wanted before the answer
    // must have come.
    if (held_ && moves_.empty() && (!background_ || background_->empty()) &&
        until >= held_->until) {
      const Action call = *std::exchange(held_, std::nullopt);
      const auto outcome = driver_.master_.Call(call.call, call.until, work_.context);
      if (outcome) {
        operation_.OnReply(call.tag, Now());
      } else {
        operation_.OnCallFailed(call.tag, outcome.error(), Now());
      }
      return;
    }
    SendHeld();
    if (!moves_.empty()) {
      // An answer does not end the wait for a transfer.
      const bool asked = background_ && !background_->empty();
      Move(asked ? std::min(until, Now() + kAnswerPause) : until);
    } else {
      Background().Wait(until);
    }
    if (background_) {
      background_->Report(operation_, work_.context);
    }
  }

  PendingCalls& Background() {
    return background_ ? *background_ : background_.emplace(driver_.master_);
  }

  void SendHeld() {
    if (held_) {
      Background().Send(*held_, work_.context);
      held_.reset();
    }
  }

  void Forget(std::uint32_t tag) {
    if (held_ && held_->tag == tag) {
      held_.reset();
    } else if (background_) {
      background_->Forget(tag);
    }
  }

  // Moves the oldest transfer as far as it gets by `until`; reports it when it has ended.
  void Move(Instant until) {
    const PendingMove move = moves_.front();
    if (!running_) {
      if (Prepare(*move.batch, until)) {
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
  bool Prepare(const TransferBatch& batch, Instant until) {
    work_.requests.clear();
    work_.piece_of.clear();
    work_.unopened.clear();
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
    if (bytes <= kShortMoveBytes && until - Now() >= kShortMoveTime &&
        driver_.engine_.Transfer(work_.requests, kShortMoveTime)) {
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
    // Each question to one that does not answer takes seconds: asked once, not for each piece.
    const std::string_view endpoint = segment.info.te_endpoint;
    const auto known = std::ranges::find(work_.unopened, endpoint, &Unopened::endpoint);
    if (known != work_.unopened.end()) {
      return std::unexpected(known->why);
    }
    const auto id = driver_.engine_.OpenSegment(segment.info.te_endpoint);
    if (!id) {
      work_.unopened.push_back({.endpoint = endpoint, .why = id.error()});
      return id;
    }
    segment.driver_handle.store(*id + 1, std::memory_order_release);
    return id;
  }

  Driver& driver_;
  Operation& operation_;
  Workspace& work_;
  std::optional<Action> held_;  // The last call that was asked for, while it may go either way.
  std::optional<PendingCalls> background_;
  std::vector<PendingMove> moves_;
  std::optional<BatchId> running_;  // The oldest move's.
};

void Driver::Run(Operation& operation) { Turn(*this, operation).Run(); }

}  // namespace mooncake::store
