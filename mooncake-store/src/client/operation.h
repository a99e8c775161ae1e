// The shape of everything a client does: an Operation says what it wants next, and is told what
// became of it. It never waits, reads a clock or touches a socket.
//
// The caller's own thread drives an operation:
//
//   for (;;) {
//     Action action = operation.Next(now);
//     if kCall:     send action.call to the master; later OnReply or OnCallFailed with action.tag
//     if kForget:   drop the call with action.tag: its answer is neither written nor reported
//     if kTransfer: move action.transfers; later OnTransfersDone with action.tag
//     if kWait:     do nothing until something ends or `until` has come
//     if kDone:     leave; nothing is pending
//   }
//
// Several calls and transfers may be under way at once; each ends exactly once, or is forgotten.
// What an action points to stays valid until its end has been reported.
//
// Thread-safety: an operation belongs to the thread that drives it. What operations share is in
// ClientCore, which locks for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/client/segment_table.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

// A request to the master and the place for its reply. The driver reads `request` when it sends and
// fills `reply` just before it calls OnReply.
template <typename Request, typename Reply>
struct Exchange {
  using RequestType = Request;
  using ReplyType = Reply;
  const Request* request = nullptr;
  Reply* reply = nullptr;
};

using MasterCall = std::variant<
    std::monostate, Exchange<PingRequest, PingReply>,
    Exchange<MountSegmentRequest, MountSegmentReply>,
    Exchange<ReMountSegmentsRequest, ReMountSegmentsReply>,
    Exchange<UnmountSegmentRequest, UnmountSegmentReply>,
    Exchange<QuerySegmentsRequest, QuerySegmentsReply>,
    Exchange<BatchExistRequest, BatchExistReply>,
    Exchange<BatchGetReplicasRequest, BatchGetReplicasReply>,
    Exchange<GetReplicasByRegexRequest, GetReplicasByRegexReply>,
    Exchange<BatchPutStartRequest, BatchPutStartReply>,
    Exchange<BatchPutEndRequest, BatchPutEndReply>, Exchange<BatchRemoveRequest, BatchRemoveReply>,
    Exchange<RemoveByRegexRequest, RemoveManyReply>, Exchange<RemoveAllRequest, RemoveManyReply>,
    Exchange<BatchReplicaClearRequest, BatchReplicaClearReply>,
    Exchange<ReportFailedReadsRequest, ReportFailedReadsReply>>;

enum class TransferOpcode : std::uint8_t { kRead, kWrite };

// One contiguous move between local memory and a segment.
struct TransferPiece {
  const PeerSegment* segment = nullptr;  // Kept alive by the operation.
  std::uint64_t address = 0;             // In the owner's address space.
  std::byte* local = nullptr;            // A source is not written to.
  std::uint64_t length_bytes = 0;        // Never zero.
  std::uint32_t item = 0;                // The operation's own mark.
};

struct TransferBatch {
  TransferOpcode opcode = TransferOpcode::kRead;
  std::vector<TransferPiece> pieces;  // Never empty.
};

// A piece that did not move whole; those not mentioned did.
struct PieceFailure {
  std::uint32_t piece = 0;  // Index in TransferBatch::pieces.
  Error why;
};

enum class ActionKind : std::uint8_t { kCall, kForget, kTransfer, kWait, kDone };

struct Action {
  ActionKind kind = ActionKind::kDone;
  std::uint32_t tag = 0;               // Names a call or transfer; unique while it is under way.
  Instant until{};                     // Of a call: its deadline. Of a wait: call Next() by then.
  MasterCall call;                     // kCall only.
  TransferBatch* transfers = nullptr;  // kTransfer only.

  [[nodiscard]] static Action Done() { return {}; }
  [[nodiscard]] static Action Wait(Instant until) {
    return {.kind = ActionKind::kWait, .tag = 0, .until = until, .call = {}, .transfers = nullptr};
  }
  [[nodiscard]] static Action Forget(std::uint32_t tag) {
    return {.kind = ActionKind::kForget, .tag = tag, .until = {}, .call = {}, .transfers = nullptr};
  }
  [[nodiscard]] static Action Move(std::uint32_t tag, TransferBatch* batch) {
    return {.kind = ActionKind::kTransfer, .tag = tag, .until = {}, .call = {}, .transfers = batch};
  }
  [[nodiscard]] static Action Call(std::uint32_t tag, Instant deadline, MasterCall call) {
    return {
        .kind = ActionKind::kCall, .tag = tag, .until = deadline, .call = call, .transfers = {}};
  }
};

class Operation {
 public:
  virtual ~Operation() = default;

  // What to do now. Called again at once after kCall, kForget and kTransfer, after each of the
  // reports below, and when a wait is over.
  [[nodiscard]] virtual Action Next(Instant now) = 0;

  virtual void OnReply(std::uint32_t tag, Instant now) = 0;
  // No answer came: the request may or may not have been carried out.
  virtual void OnCallFailed(std::uint32_t tag, const Error& why, Instant now) = 0;
  virtual void OnTransfersDone(std::uint32_t /*tag*/, std::span<const PieceFailure> /*failures*/,
                               Instant /*now*/) {}
};

}  // namespace mooncake::store
