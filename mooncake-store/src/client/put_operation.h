// Writes objects: put (the first writer's bytes stay) or upsert (the new bytes replace them).
//
// The call is cut into windows: start at the master, bytes to every replica, end at the master with
// the successes and the failures of the window. While one window's bytes move, the next one's start
// travels. Each key has its own fate:
//   - it exists already: success, and failures() tells it as kObjectAlreadyExists;
//   - the store is full: asked again on the master's hint, until put_wait has passed without this
//   call
//     holding space of its own;
//   - a replica cannot be written: revoked, reported, and placed anew, a few times;
//   - the master lost the write (it restarted, or an upsert overtook it): started anew;
//   - it is in the call twice: put keeps the first value, upsert the last; both get one result;
//   - an answer was lost: the start is repeated under the call's name, by which the master knows
//   its
//     own answer, so that a write of our own is not taken for somebody else's.
//
// Thread-safety: see Operation.
// Ownership:     keys, pieces and their memory stay the caller's until kDone; it is only read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "mooncake-store/src/client/call_slot.h"
#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/failure.h"
#include "mooncake-store/src/client/location.h"
#include "mooncake-store/src/client/operation.h"
#include "mooncake-store/src/client/segment_blame.h"

namespace mooncake::store {

struct SourcePiece {
  const std::byte* memory = nullptr;
  std::uint64_t length_bytes = 0;
};

struct PutItem {
  std::string_view key;
  std::span<const SourcePiece> pieces;  // The object's bytes, in order.
};

class PutOperation final : public Operation {
 public:
  explicit PutOperation(ClientCore& core) : core_(core) {}

  // Begins a call. Not while one is under way. `config` may hold one group_id a key; its views stay
  // valid until kDone.
  void Start(std::span<const PutItem> items, const ReplicateConfigView& config, bool upsert);

  [[nodiscard]] Action Next(Instant now) override;
  void OnReply(std::uint32_t tag, Instant now) override;
  void OnCallFailed(std::uint32_t tag, const Error& why, Instant now) override;
  void OnTransfersDone(std::uint32_t tag, std::span<const PieceFailure> failures,
                       Instant now) override;

  // One an item, after kDone: kOk also for a key that existed.
  [[nodiscard]] std::span<const StoreCode> results() const { return results_; }
  // What failed, and the keys that existed (kObjectAlreadyExists).
  [[nodiscard]] const FailureLog& failures() const { return failures_; }

 private:
  enum class Phase : std::uint8_t {
    kStart,      // To be started once `retry_at` has come.
    kStarting,   // Asked for.
    kResolving,  // Placed, on segments that have to be asked for.
    kReady,      // Placed, bytes to be moved.
    kMoving,
    kEnd,     // To be ended, as `moved` says.
    kEnding,  // The end is under way.
    kSettled,
    kDuplicate,  // Another item of the call writes its key.
  };

  struct ItemState {
    Phase phase = Phase::kStart;
    bool moved = false;       // All bytes are in place: commit, else revoke.
    bool restart = false;     // After the revoke: from the start again.
    std::uint8_t starts = 0;  // Placements that led to nothing.
    StoreCode revoke_code =
        StoreCode::kOk;  // What the key gets after the revoke, unless restarted.
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;
    ReplicaRange range;  // In the reply of the start.
    Instant retry_at{};
    Instant full_until{};  // The end of waiting for space; zero = not waiting.
    std::shared_ptr<const Location> location;
    std::string cause;
  };

  struct Window {
    bool active = false;
    bool moving = false;
    bool resolving = false;  // The start's reply waits for segments.
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    std::uint32_t unsettled = 0;
    CallSlot start;
    CallSlot ending;
    TransferBatch batch;
    std::vector<std::uint32_t> starting;  // Items in the start under way, in the order of its keys.
    std::vector<std::uint32_t> ended;     // The same of the end.
    std::vector<SegmentNumber> missing;
    BatchPutStartRequest start_request;
    BatchPutStartReply start_reply;
    QuerySegmentsRequest segments_request;
    QuerySegmentsReply segments_reply;
    BatchPutEndRequest end_request;
    BatchPutEndReply end_reply;
  };
  // One starts, one moves, one ends.
  static constexpr std::uint32_t kWindows = 3;

  enum TagKind : std::uint32_t { kStartTag = 0, kMoveTag = 1, kEndTag = 2 };
  static constexpr std::uint32_t kTagsPerWindow = 4;

  void FindDuplicates();
  void CopyResults();
  [[nodiscard]] bool MayOpen() const;
  void Open(Window& window);
  [[nodiscard]] std::optional<Action> NextOf(std::uint32_t index, Instant now);
  [[nodiscard]] bool PrepareStart(Window& window, Instant now);
  [[nodiscard]] bool PrepareEnd(Window& window);
  [[nodiscard]] bool FillBatch(Window& window);
  [[nodiscard]] Instant WakeOf(const Window& window) const;
  [[nodiscard]] std::uint32_t CountIn(const Window& window, Phase phase) const;
  // Whether any key of the call occupies space that the store could otherwise use.
  [[nodiscard]] bool HoldsSpace() const;

  void TakeStart(Window& window, Instant now);
  void ResolvePlaces(Window& window, bool last_try, Instant now);
  void Refused(Window& window, std::uint32_t item, bool holds_space, Instant now);
  void TakeEnd(Window& window, Instant now);
  void Ended(Window& window, std::uint32_t item, StoreCode code, Instant now);
  void Revoke(std::uint32_t item, StoreCode code, bool restart, std::string_view cause);
  void Settle(Window& window, std::uint32_t item, StoreCode code, std::string_view cause);

  ClientCore& core_;
  std::span<const PutItem> items_;
  ReplicateConfigView config_;
  bool upsert_ = false;
  std::uint64_t chain_ = 0;
  std::uint32_t next_item_ = 0;
  std::vector<ItemState> states_;
  std::vector<std::uint32_t> key_slots_;  // Scratch of FindDuplicates().
  struct Duplicate {
    std::uint32_t item = 0;
    std::uint32_t written = 0;
  };
  std::vector<Duplicate> duplicates_;
  std::vector<StoreCode> results_;
  FailureLog failures_;
  std::array<Window, kWindows> windows_;

  SegmentBlame blame_;
};

}  // namespace mooncake::store
