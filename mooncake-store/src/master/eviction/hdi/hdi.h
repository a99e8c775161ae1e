// The hit-density index: evicts the block with the fewest hits to be expected per unit of time
// held, from the end of its chain. Learns from what returns and when. docs/design/eviction.md tells
// why each part is needed and what it reaches.
//
// Parts: chain_forest.h (who may go without leaving a hole), ghosts.h (who has been seen, though it
// may be gone), hazards.h (what is worth how much), and here: the accounts of each lookup, and the
// choice of victims, the lowest of a few ends drawn at random and some kept from last time.
//
// Thread-safety: none (see policy.h).
// Determinism:   equal events and equal leases give equal picks. Time is counted in blocks
//                asked for.
// Memory:        24 bytes an object; about 34 a ghost, of which there are 16 384 and one an object
//                at most; 0.6 MB besides.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/eviction/hdi/chain_forest.h"
#include "mooncake-store/src/master/eviction/hdi/ghosts.h"
#include "mooncake-store/src/master/eviction/hdi/hazards.h"
#include "mooncake-store/src/master/eviction/hdi/recent_misses.h"
#include "mooncake-store/src/master/eviction/policy.h"

namespace mooncake::store {

class HdiPolicy final : public EvictionPolicy {
 public:
  explicit HdiPolicy(std::uint64_t seed) : rng_(seed) {}

  [[nodiscard]] bool NeedsParents() const override { return true; }
  void OnChain(const ChainEvent& event) override;
  void OnPut(const PutEvent& event) override;
  void OnReady(Slot slot) override;
  void OnPin(Slot slot, PinClass pin) override;
  void OnGone(Slot slot) override;
  void Pick(const PickRequest& request, SlotGuard& guard, std::vector<Slot>& out) override;

  [[nodiscard]] std::string CheckInvariants() override { return forest_.CheckInvariants(); }

  // For tests.
  [[nodiscard]] std::size_t ghost_count() const { return ghosts_.size(); }

 private:
  // A window of a longer call: how much of the call was known up to its end.
  struct OpenChain {
    std::uint64_t client = 0;
    std::uint64_t chain_id = 0;
    std::uint32_t next = 0;
    std::uint32_t known = 0;
  };
  // A block of the lookup at hand.
  struct Seen {
    ChainForest::Node* node = nullptr;
    Ghosts::Id ghost = Ghosts::kNone;
    Reuse reuse;
  };
  struct Candidate {
    Slot slot = kNoSlot;
    std::uint32_t last = 0;  // As it was when it became one.
    float worth = 0;
  };
  // A list of ends that a pick draws from.
  struct Source {
    SegmentNumber segment = 0;
    std::size_t kind = 0;
    std::size_t end = 0;  // Of its part of the numbers that are drawn.
  };
  struct PickState;

  [[nodiscard]] std::size_t ghost_limit() const { return kGhosts + forest_.size(); }
  // Lets the hazards forget as time goes by.
  void ForgetWhenDue();
  // Finds the blocks of the event; returns how many of them lead up to the last one known.
  std::size_t FindKnown(const ChainEvent& event);
  void Classify(const ChainEvent& event, std::size_t known_here, std::uint32_t known_of_call);
  // Those of the blocks asked for give way to new ones.
  void ReplaceGhosts(const ChainEvent& event);
  void Settle(const ChainEvent& event);
  // How many blocks of the whole call, up to the end of this window, were known.
  std::uint32_t KnownOfCall(const ChainEvent& event, std::size_t known_here);

  // hdi_pick.cc
  // Brings the worths up to date if something was forgotten since they were worked out. Only picks
  // need them, so lookups do not pay for them.
  void FitWhenDue();
  void Begin(PickState& pick);
  [[nodiscard]] bool MayGo(PickState& pick, Slot slot);
  // Whether it may be chosen: not what is to be kept, nor pinned more than allowed, nor leased.
  [[nodiscard]] bool Eligible(PickState& pick, Slot slot);
  void AddCandidate(Slot slot);
  [[nodiscard]] bool IsCandidate(Slot slot) const;
  void KeepLowest();
  void FindSources(PickState& pick, bool everywhere);
  [[nodiscard]] Slot Draw(PickState& pick, bool everywhere);
  template <typename Wanted>
  [[nodiscard]] Slot Search(PickState& pick, bool everywhere, Wanted wanted);
  // The next victim where space is needed; kNoSlot: there is no end there that may go.
  [[nodiscard]] Slot Choose(PickState& pick);
  // An end elsewhere on which an object hangs that could go where space is needed.
  [[nodiscard]] Slot Dig(PickState& pick);
  [[nodiscard]] std::uint32_t StepsToWanted(PickState& pick, Slot slot);
  // An inner object where space is needed, when all ends are bound.
  [[nodiscard]] Slot ChooseInner(PickState& pick);
  // Whether what is to be kept may go.
  [[nodiscard]] bool KeptMayGo(PickState& pick);

  static constexpr std::size_t kGhosts = 16384;
  static constexpr std::size_t kOpenChains = 16;
  static constexpr std::size_t kDrawn = 4;  // Ends drawn for each victim.
  static constexpr std::size_t kPool = 16;  // Candidates kept for the next.

  Rng rng_;
  std::uint64_t blocks_seen_ = 0;
  std::uint32_t tick_ = 0;  // As the latest lookup began. Wraps around: only differences count.
  std::uint32_t last_forgot_ = 0;
  bool fit_due_ = false;
  Hazards hazards_;
  Ghosts ghosts_{hazards_};
  ChainForest forest_;
  RecentMisses misses_;
  std::vector<OpenChain> open_chains_;  // The latest last.
  // Candidates of picks on one segment, and of those on several (kNoSegment).
  std::unordered_map<SegmentNumber, std::vector<Candidate>> pools_;
  static constexpr SegmentNumber kSeveral = 0xffffffff;

  // That no inner object on these segments may go, as long as they do not change.
  struct InnerBound {
    SegmentMask segments;
    std::size_t kinds = 0;
    std::uint64_t changes = 0;
    Slot first = kNoSlot;       // The one that may go first,
    std::int64_t until_ns = 0;  // and when.
  };
  InnerBound inner_bound_;

  std::vector<Seen> seen_;                      // Scratch of OnChain().
  std::vector<Candidate> candidates_;           // Scratch of Pick(), as is the rest.
  std::array<std::vector<Source>, 2> sources_;  // Where space is needed, and everywhere.
};

}  // namespace mooncake::store
