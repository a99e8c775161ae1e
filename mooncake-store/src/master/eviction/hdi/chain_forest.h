// The resident objects as trees: each knows the object before it in its chain. Those that nothing
// hangs on are the ends, and only ends may go, so that nothing stays behind a hole.
//
// An end is listed on each segment that it lies on, apart by its soft pin, ready to be drawn at
// random. An end that was found leased rests off the lists until its lease is over, so that a store
// full of leased objects is not searched again and again.
//
// The others, inner objects, are in no list. They have to be searched when all ends are bound: one
// that may go can have a child that is leased, being written or pinned.
//
// Orphans. An object may be removed, or lost with its segment, while others hang on it. They keep
// naming its slot, and the slot may meanwhile belong to another object. So a slot that left orphans
// counts its lives, and a child says in which life its parent was.
//
// Thread-safety: none; the owner's lock.
// Memory:        24 bytes an object, 4 to 8 more an end; 16 more while it rests.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mooncake-store/src/master/eviction/hdi/reuse.h"
#include "mooncake-store/src/master/eviction/policy.h"
#include "mooncake-store/src/master/eviction/slot_array.h"

namespace mooncake::store {

class ChainForest {
 public:
  enum class State : std::uint8_t { kUnlisted, kListed, kResting };
  static constexpr std::uint32_t kUnusedSegment = 0xffffff;
  static constexpr std::size_t kPinKinds = 2;  // No pin, soft pin; hard-pinned ones are not listed.

  struct Node {
    std::uint32_t last = 0;  // Tick of the last use.
    Slot parent = kNoSlot;
    std::uint32_t at = 0;     // kListed: its place in the first segment's list; else its children.
    std::uint32_t units = 0;  // On the first segment.
    std::uint32_t segment : 24 = kUnusedSegment;  // The first.
    std::uint32_t ready : 1 = 0;
    std::uint32_t pin : 2 = 0;     // A PinClass.
    std::uint32_t state : 2 = 0;   // A State.
    std::uint32_t spread : 1 = 0;  // Lies on more segments than the first.
    // Free for who accounts its uses: 0 when its block surely has no ghost (ghosts.h).
    std::uint32_t ghost : 1 = 1;
    Reuse reuse;
    std::uint8_t parent_life = 0;

    [[nodiscard]] State listing() const { return static_cast<State>(state); }
  };
  static_assert(sizeof(Node) == 24);

  // Null when no object has the slot.
  [[nodiscard]] Node* Find(Slot slot);
  // Of a slot that an object has.
  [[nodiscard]] Node& At(Slot slot) { return nodes_.At(slot); }
  void Prefetch(Slot slot) {
    if (const Node* node = slot == kNoSlot ? nullptr : nodes_.Find(slot)) {
      __builtin_prefetch(node);
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }

  // The object's node; it is no end before SetReady(). A parent that is not there is none.
  Node& Add(const PutEvent& event);
  void SetReady(Slot slot);
  void SetPin(Slot slot, PinClass pin);
  // Returns its parent if that has become an end, else kNoSlot.
  Slot Remove(Slot slot);

  // Hangs an object whose parent is not there on `parent`, unless that hangs on it. `root` is where
  // the chain of `parent` begins, or kNoSlot: then it is found out.
  void Adopt(Slot orphan, Slot parent, Slot& root);
  [[nodiscard]] bool HasParent(const Node& node) const;

  // ---- Ends ----

  [[nodiscard]] std::span<const Slot> Ends(SegmentNumber segment, std::size_t kind) const {
    return segment < lists_.size() ? std::span<const Slot>(lists_[segment][kind])
                                   : std::span<const Slot>();
  }
  [[nodiscard]] std::size_t segment_count() const { return lists_.size(); }
  [[nodiscard]] std::uint64_t BytesOn(Slot slot, const SegmentMask& segments);
  [[nodiscard]] bool LiesOn(Slot slot, const SegmentMask& segments) {
    return BytesOn(slot, segments) > 0;
  }

  // ---- Inner objects: ready, not hard-pinned, and others hang on them ----

  // Calls visit(slot, node) for at most `steps` slots, in a circle that begins behind where the
  // last search ended, until it returns true. Returns that slot, else kNoSlot; takes what it did
  // from `steps`.
  template <typename Visit>
  Slot SearchInner(std::size_t& steps, Visit visit);
  [[nodiscard]] std::size_t slots() const { return nodes_.end(); }
  // Grows when an object on one of the segments may have become an inner one.
  [[nodiscard]] std::uint64_t InnerChanges(const SegmentMask& segments) const;

  // A listed end that may not go before `until_ns`.
  void Rest(Slot slot, std::int64_t until_ns);
  // Lists the resting ends for which until(slot) is not above now_ns. Returns the first of the
  // others, kNoSlot if there is none.
  template <typename Until>
  Slot WakeRested(std::int64_t now_ns, Until until);

  // As Remove() will do, for an end, until Undo(). Ends are taken and undone as on a stack.
  Slot Take(Slot slot);
  void Undo(Slot slot);

  // The first contradiction in words, else empty. Slow.
  [[nodiscard]] std::string CheckInvariants();

 private:
  struct FurtherPlace {
    SegmentNumber segment = 0;
    std::uint32_t units = 0;
    std::uint32_t at = 0;
  };
  struct Resting {
    std::int64_t until_ns = 0;
    Slot slot = kNoSlot;
    // The earliest on top of the heap; ties in slot order.
    friend bool operator<(const Resting& a, const Resting& b) {
      return a.until_ns != b.until_ns ? a.until_ns > b.until_ns : a.slot > b.slot;
    }
  };
  // Of a slot that has left orphans.
  struct Lives {
    std::uint8_t current = 0;
    std::vector<std::pair<std::uint8_t, std::uint32_t>> orphans;  // Life, and how many.
  };

  static std::size_t KindOf(const Node& node) {
    return node.pin == static_cast<std::uint32_t>(PinClass::kSoft) ? 1 : 0;
  }
  [[nodiscard]] static bool MayBeListed(const Node& node) {
    return node.listing() == State::kUnlisted && node.at == 0 && node.ready != 0 &&
           node.pin != static_cast<std::uint32_t>(PinClass::kHard);
  }
  template <typename Visit>
  void ForEachPlace(Slot slot, Node& node, Visit visit);
  void List(Slot slot, Node& node);
  void Unlist(Slot slot, Node& node);
  // From whatever state to kUnlisted, without children.
  void Settle(Slot slot, Node& node);
  void Hang(Slot child, Node& node, Slot parent);
  // Returns the parent if that has become an end.
  Slot LetGo(Node& node);
  void PushResting(Resting resting);
  [[nodiscard]] static bool IsInner(const Node& node) {
    return node.listing() == State::kUnlisted && node.at > 0 && node.ready != 0 &&
           node.pin != static_cast<std::uint32_t>(PinClass::kHard);
  }
  void NoteInner(Slot slot, Node& node);

  SlotArray<Node> nodes_;
  std::size_t size_ = 0;
  std::vector<std::array<std::vector<Slot>, kPinKinds>> lists_;  // By segment.
  std::unordered_map<Slot, std::vector<FurtherPlace>> further_;
  std::unordered_map<Slot, Lives> lives_;
  std::vector<Resting> resting_;  // A heap; those not resting any more are left in it for a while.
  std::size_t resting_count_ = 0;
  std::vector<std::uint64_t> inner_changes_;  // By segment.
  Slot hand_ = 0;                             // Of SearchInner().
};

template <typename Visit>
Slot ChainForest::SearchInner(std::size_t& steps, Visit visit) {
  for (; steps > 0; --steps) {
    hand_ = hand_ + 1 < nodes_.end() ? hand_ + 1 : 0;
    Node* node = Find(hand_);
    if (node != nullptr && IsInner(*node) && visit(hand_, *node)) {
      --steps;
      return hand_;
    }
  }
  return kNoSlot;
}

template <typename Until>
Slot ChainForest::WakeRested(std::int64_t now_ns, Until until) {
  // What a heap entry says is the least: the lease may have been renewed.
  while (!resting_.empty()) {
    const Resting first = resting_.front();
    Node* node = Find(first.slot);
    const bool rests = node != nullptr && node->listing() == State::kResting;
    const std::int64_t true_until = rests ? until(first.slot) : 0;
    if (rests && true_until > now_ns && true_until <= first.until_ns) {
      return first.slot;
    }
    std::pop_heap(resting_.begin(), resting_.end());
    resting_.pop_back();
    if (rests && true_until > now_ns) {
      PushResting({true_until, first.slot});
    } else if (rests) {
      Settle(first.slot, *node);
      List(first.slot, *node);
    }
  }
  return kNoSlot;
}

}  // namespace mooncake::store
