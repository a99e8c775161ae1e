// Least recently used: the victim is the object whose last lookup, or put if it was never looked
// up, is longest ago, among those on the segments where space is needed.
//
// Leases make the usual list slow: a store full of leased objects would be walked from end to end
// for each victim. So each segment has one list of objects that were looked up and one of those
// that were not. Leases are all of one length, so in the first list they end in list order and its
// tail speaks for all; in the second nobody is leased.
//
// Thread-safety: none (see policy.h).
// Memory:        24 bytes an object and segment that it lies on.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "mooncake-store/src/master/eviction/policy.h"
#include "mooncake-store/src/master/eviction/slot_array.h"

namespace mooncake::store {

class LruPolicy final : public EvictionPolicy {
 public:
  [[nodiscard]] bool NeedsParents() const override { return false; }
  void OnChain(const ChainEvent& event) override;
  void OnPut(const PutEvent& event) override;
  void OnReady(Slot slot) override;
  void OnPin(Slot slot, PinClass pin) override;
  void OnGone(Slot slot) override;
  void Pick(const PickRequest& request, SlotGuard& guard, std::vector<Slot>& out) override;

 private:
  // An object on one segment. The first one of a slot has the slot's number, so that most objects
  // need no other; further ones (replicas elsewhere) are numbered from kFirstExtra.
  using NodeId = std::uint32_t;
  static constexpr NodeId kNil = 0xffffffff;
  static constexpr NodeId kFirstExtra = 0x80000000;
  static constexpr std::uint32_t kUnusedSegment = 0xffffff;

  struct Node {
    std::uint64_t stamp = 0;
    NodeId newer = kNil;
    NodeId older = kNil;
    std::uint32_t units = 0;
    std::uint32_t segment : 24 = kUnusedSegment;
    // Of the whole object; kept with its first node only.
    std::uint32_t ready : 1 = 0;
    std::uint32_t looked_up : 1 = 0;
    std::uint32_t pin : 2 = 0;  // A PinClass.
    std::uint32_t picked : 1 = 0;
  };
  static_assert(sizeof(Node) == 24);

  struct List {
    NodeId newest = kNil;
    NodeId oldest = kNil;
  };
  // Per segment: never looked up, looked up; then the same for soft-pinned objects.
  using SegmentLists = std::array<List, 4>;

  struct Extra {
    Node node;
    Slot slot = kNoSlot;
  };

  // The object's first node, or null when the policy does not know the slot.
  Node* Known(Slot slot);
  Node& NodeAt(NodeId id);
  [[nodiscard]] Slot SlotOf(NodeId id) const;
  // Whether objects like this one stand in lists at all.
  static bool Listed(const Node& first);
  static std::size_t KindOf(const Node& first);
  template <typename Visit>
  void ForEachNode(Slot slot, Visit visit);
  // At the newer end, with the current stamp.
  void Link(Slot slot, const Node& first);
  void Unlink(Slot slot, const Node& first);
  std::uint64_t BytesOn(Slot slot, const SegmentMask& segments);

  std::uint64_t stamp_ = 0;
  SlotArray<Node> nodes_;
  std::vector<Extra> extras_;
  std::vector<std::uint32_t> unused_extras_;
  std::unordered_map<Slot, std::vector<NodeId>> extras_of_;
  std::vector<SegmentLists> lists_;
  struct Cursor {
    NodeId next = kNil;
    bool looked_up = false;
    std::uint32_t bound = 0;  // Objects passed that may not go.
  };
  static constexpr std::uint32_t kMostBound = 64;
  std::vector<Cursor> cursors_;  // Scratch of Pick().
};

}  // namespace mooncake::store
