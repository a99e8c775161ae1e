// The seam of eviction policies: what a policy hears, and what it is asked.
//
// There is one policy a master, above the shards. It decides only; the shards drop. It knows
// objects by slot, a small number that stays with an object for its life and may then be given to
// another.
//
// Thread-safety: none; EvictionHub calls it from one thread at a time, in the order of the events.
// Determinism:   no clock, no randomness but an Rng given at construction: equal events, equal
//                picks.
// Ownership:     spans lend for the call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "mooncake-store/src/protocol/replicas.h"

namespace mooncake::store {

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = 0xffffffff;

// A set of segments.
class SegmentMask {
 public:
  void Add(SegmentNumber number) {
    if (words_.size() <= number / 64) {
      words_.resize(number / 64 + 1);
    }
    words_[number / 64] |= std::uint64_t{1} << (number % 64);
  }
  void Add(const SegmentMask& other) {
    words_.resize(std::max(words_.size(), other.words_.size()));
    std::ranges::transform(other.words_, words_, words_.begin(), std::bit_or<>());
  }
  [[nodiscard]] bool Has(SegmentNumber number) const {
    return number / 64 < words_.size() && ((words_[number / 64] >> (number % 64)) & 1U) != 0;
  }
  [[nodiscard]] bool HasAll(const SegmentMask& other) const {
    for (std::size_t i = 0; i < other.words_.size(); ++i) {
      const std::uint64_t own = i < words_.size() ? words_[i] : 0;
      if ((other.words_[i] & ~own) != 0) {
        return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool Overlaps(const SegmentMask& other) const {
    for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i) {
      if ((words_[i] & other.words_[i]) != 0) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool Empty() const {
    return std::ranges::all_of(words_, [](std::uint64_t word) { return word == 0; });
  }
  void Clear() { words_.clear(); }

 private:
  std::vector<std::uint64_t> words_;
};

enum class PinClass : std::uint8_t { kNone, kSoft, kHard };

// A key of a lookup.
struct ChainKey {
  std::uint64_t hash = 0;  // Of tenant and key.
  Slot slot = kNoSlot;     // kNoSlot: not resident.
};

// A lookup of several keys in order: each is of use only together with those before it. A call that
// was cut into windows comes as several events with one chain id and growing positions.
struct ChainEvent {
  std::uint64_t client = 0;  // Some hash of the client's identity.
  std::uint64_t chain_id = 0;
  std::uint32_t position = 0;  // Of keys[0] in the call.
  std::uint32_t total = 0;     // Keys of the call; at least position + keys.size().
  bool again = false;          // The client reads what it has just looked up: no second use.
  std::span<const ChainKey> keys;
};

// Bytes that an object takes on one segment, in units of 64.
struct Placement {
  SegmentNumber segment = 0;
  std::uint32_t units = 0;
};

struct PutEvent {
  Slot slot = kNoSlot;
  Slot parent = kNoSlot;  // The key before it in its chain, if resident.
  std::uint64_t hash = 0;
  PinClass pin = PinClass::kNone;
  std::span<const Placement> placements;  // One a segment.
};

// Says which objects may go now: not leased, not being written.
class SlotGuard {
 public:
  [[nodiscard]] virtual bool MayGo(Slot slot) = 0;
  // The present, and until when an object may not go; of those being written: the end of time. In
  // nanoseconds of the master's clock. Only for comparing them: a policy's own clock is the events.
  [[nodiscard]] virtual std::int64_t now_ns() const = 0;
  [[nodiscard]] virtual std::int64_t BoundUntilNs(Slot slot) = 0;

 protected:
  ~SlotGuard() = default;
};

struct PickRequest {
  const SegmentMask* segments = nullptr;  // Where space is needed.
  std::uint64_t bytes = 0;                // How much.
  bool soft_pinned_too = false;           // Hard-pinned objects never go.
  Slot keep = kNoSlot;  // The parent of what space is made for: goes only if nothing else may.
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // Whether PutEvent::parent is worth finding out.
  [[nodiscard]] virtual bool NeedsParents() const = 0;

  // Keys were looked up; those resident are now leased. A get after its lookup comes as well.
  virtual void OnChain(const ChainEvent& event) = 0;

  // An object has got its slot and space; its bytes are on their way. In the order of the keys.
  virtual void OnPut(const PutEvent& event) = 0;

  // Its bytes are there: from now on it may be picked. In reverse order of the keys of a batch, so
  // that who orders by time keeps the heads of chains longest.
  virtual void OnReady(Slot slot) = 0;

  virtual void OnPin(Slot slot, PinClass pin) = 0;

  // The slot is free; it may come back for another object.
  virtual void OnGone(Slot slot) = 0;

  // Appends objects whose removal frees `bytes` on `segments`, best victim first; fewer when no
  // more may go, and none only when none may, or none but soft-pinned ones that are not asked for.
  // Does not remove them: OnGone follows for those that were.
  virtual void Pick(const PickRequest& request, SlotGuard& guard, std::vector<Slot>& out) = 0;

  // The first contradiction in its own state, in words, else empty. Slow; for tests.
  [[nodiscard]] virtual std::string CheckInvariants() { return {}; }
};

}  // namespace mooncake::store
