// Reads objects, or parts of them, into the caller's memory.
//
// Each key goes its own way: a cached descriptor whose lease lives costs no RPC; else the master is
// asked in windows, two of which are under way at a time. Bytes come from the nearest replica that
// is not under suspicion; when it fails, from the next one, and the failure is reported. Leases of
// what is being read are renewed at half their time, so that a call may last as long as it must.
// Bytes that arrived after their lease had ended are kept if the master then says that the very
// same version still lies there; if it was replaced the new version is read instead; if it is gone
// the key gets kLeaseExpired. So a key that succeeds holds the bytes of exactly one version.
//
// An object of this class is meant to be used again and again: a read of one cached key does not
// allocate.
//
// Thread-safety: see Operation.
// Ownership:     keys, fragments and their memory stay the caller's until kDone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/failure.h"
#include "mooncake-store/src/client/location.h"
#include "mooncake-store/src/client/lookup.h"
#include "mooncake-store/src/client/operation.h"
#include "mooncake-store/src/client/segment_blame.h"

namespace mooncake::store {

// Memory for objects whose size the caller does not know.
class DestinationProvider {
 public:
  // Memory for all of item `item`, or null to fail it with kInvalidParams. Asked again, with
  // another size, when the object was replaced meanwhile; the earlier memory is then no longer
  // used.
  virtual std::byte* Provide(std::uint32_t item, std::uint64_t size_bytes) = 0;

 protected:
  ~DestinationProvider() = default;
};

struct GetItem {
  std::string_view key;
  // Whole object: memory that takes it in order, object_offset is not read; none = the provider is
  // asked. Together too small: kInvalidParams. Ranges: any parts of the object.
  std::span<const Fragment> fragments;
  // Ranges when not null: one result a fragment, bytes or a negative code.
  std::int64_t* fragment_results = nullptr;
};

class GetOperation final : public Operation {
 public:
  struct Result {
    StoreCode code = StoreCode::kInternalError;
    std::uint64_t bytes = 0;  // Of the object; of a ranges item, what was read in all.
  };

  explicit GetOperation(ClientCore& core) : core_(core) {}

  // Begins a call. Not while one is under way.
  void Start(std::span<const GetItem> items, DestinationProvider* provider = nullptr);

  [[nodiscard]] Action Next(Instant now) override;
  void OnReply(std::uint32_t tag, Instant now) override;
  void OnCallFailed(std::uint32_t tag, const Error& why, Instant now) override;
  void OnTransfersDone(std::uint32_t tag, std::span<const PieceFailure> failures,
                       Instant now) override;

  // One an item, after kDone.
  [[nodiscard]] std::span<const Result> results() const { return results_; }
  [[nodiscard]] const FailureLog& failures() const { return failures_; }

 private:
  enum class Phase : std::uint8_t {
    kLookup,     // Its place has to be asked for.
    kLookingUp,  // Being asked for.
    kReady,      // Place known, bytes to be moved.
    kMoving,
    kCheck,  // Moved, but its lease had ended by then: still the same version?
    kSettled,
  };

  struct ItemState {
    Phase phase = Phase::kLookup;
    bool failed_piece = false;  // In the batch being reported.
    bool unreadable = false;    // All replicas of some location failed.
    bool stale = false;         // A renewal said that the version being moved was replaced.
    bool gone = false;          // A renewal said that it does not exist any more.
    std::uint8_t asked = 0;     // Times that its place was asked for.
    std::uint8_t versions = 0;  // Times that it was replaced under our hands.
    std::uint32_t replica = 0;  // In location->replicas, being read.
    std::uint32_t tried = 0;    // Bit r = replica r of this location failed.
    std::shared_ptr<const Location> location;
    Instant lease_until{};
    Instant moved_at{};
    Fragment provided;  // What the provider gave.
  };

  struct Window {
    bool active = false;
    bool moving = false;
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    std::uint32_t unsettled = 0;
    std::uint32_t to_lookup = 0;  // Items in that phase, so that idle turns cost nothing.
    std::uint32_t ready = 0;
    std::uint32_t to_check = 0;
    Instant renew_at = Instant::max();
    Lookup lookup;
    Lookup renewal;
    TransferBatch batch;
  };
  static constexpr std::uint32_t kWindows = 2;

  // Tags: window * kTagsPerWindow + one of these, and SegmentBlame::kTag.
  enum TagKind : std::uint32_t { kLookupTag = 0, kMoveTag = 1, kRenewalTag = 2 };
  static constexpr std::uint32_t kTagsPerWindow = 4;

  void Open(Window& window, Instant now);
  [[nodiscard]] std::optional<Action> NextOf(std::uint32_t index, Instant now);
  void StartLookup(Window& window, std::uint32_t index, Instant now);
  // Its lease protects bytes that are, were or will be moved.
  [[nodiscard]] static bool IsLeased(const ItemState& state) {
    return state.phase == Phase::kReady || state.phase == Phase::kMoving ||
           state.phase == Phase::kCheck;
  }
  [[nodiscard]] bool AnyLeased(const Window& window) const;
  void StartRenewal(Window& window, std::uint32_t index, Instant now);
  [[nodiscard]] bool FillBatch(Window& window, Instant now);
  void TakeLookup(Window& window, Instant now);
  void TakeRenewal(Window& window, Instant now);

  // The item's place is known: on to kReady, or settled when its memory does not fit.
  void Locate(Window& window, std::uint32_t item, std::shared_ptr<const Location> location,
              Instant lease_until, Instant now);
  void ChooseReplica(ItemState& state, Instant now) const;
  [[nodiscard]] bool CutItem(std::uint32_t item, std::vector<TransferPiece>& pieces);
  void Moved(Window& window, std::uint32_t item, const Error* why, Instant now);
  void ReadFailed(Window& window, std::uint32_t item, const Error& why, Instant now);
  void Replaced(Window& window, std::uint32_t item);
  void Succeed(Window& window, std::uint32_t item);
  void Settle(Window& window, std::uint32_t item, StoreCode code, std::string_view cause);
  void SetPhase(Window& window, ItemState& state, Phase phase);

  ClientCore& core_;
  std::span<const GetItem> items_;
  DestinationProvider* provider_ = nullptr;
  std::uint64_t chain_ = 0;
  std::uint32_t next_item_ = 0;
  std::vector<ItemState> states_;
  std::vector<Result> results_;
  FailureLog failures_;
  std::array<Window, kWindows> windows_;

  SegmentBlame blame_;
};

}  // namespace mooncake::store
