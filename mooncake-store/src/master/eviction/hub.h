// Stands between the shards and the eviction policy: carries what happens, in order, through a ring
// that is cheap to write to, and asks the policy for victims.
//
// A lookup only appends to the ring. The ring is drained into the policy before victims are picked
// and when it has grown, never while a shard is locked.
//
// Order. OnGone() is called under the shard's lock, everything else after it was released, so that
// a batch can be told in the order of its keys. Hence an event may name a slot that has since gone
// to another object; the hash that comes with each slot tells, and such an event is dropped.
//
// Thread-safety: any thread. Two locks, both leaves to the shards': the policy's, then the ring's.
// Bounds:        the ring holds kDrainAbove records and keys, and one batch of each writing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/eviction/policy.h"
#include "mooncake-store/src/master/eviction/slot_array.h"

namespace mooncake::store {

class EvictionHub {
 public:
  explicit EvictionHub(std::unique_ptr<EvictionPolicy> policy);

  [[nodiscard]] bool NeedsParents() const { return needs_parents_; }

  // The resident keys of the event are leased until then.
  void OnChain(const ChainEvent& event, Instant leased_until) MC_EXCLUDES(ring_mutex_);

  struct Put {
    ChainKey key;
    ChainKey parent;
    PinClass pin = PinClass::kNone;
    std::uint32_t first_placement = 0;  // Into `placements`.
    std::uint32_t placement_count = 0;
  };
  // In the order of the keys.
  void OnPuts(std::span<const Put> puts, std::span<const Placement> placements)
      MC_EXCLUDES(ring_mutex_);
  // In the order of the keys too; the policy hears them from the last to the first.
  void OnReady(std::span<const ChainKey> keys) MC_EXCLUDES(ring_mutex_);
  void OnPin(ChainKey key, PinClass pin) MC_EXCLUDES(ring_mutex_);
  // Leased without having been looked up: members of a group; or found leased by a shard that was
  // to drop it.
  void OnLease(ChainKey key, Instant leased_until) MC_EXCLUDES(ring_mutex_);
  void OnGone(std::span<const ChainKey> keys) MC_EXCLUDES(ring_mutex_);

  // Empties the ring when it has grown. Called at the end of each operation, with no shard locked.
  void DrainIfGrown() MC_EXCLUDES(ring_mutex_, policy_mutex_);

  // Appends victims (see EvictionPolicy::Pick). Returns when the first of the objects that were
  // asked about, but may not go yet, will be free to; nothing if there was none.
  std::optional<Instant> Pick(const PickRequest& request, Instant now, std::vector<Slot>& out)
      MC_EXCLUDES(ring_mutex_, policy_mutex_);

  // Whether it knows just as many objects as there are, and what the policy says of itself: the
  // first contradiction in words, else empty. Slow; for tests, when nothing else goes on.
  [[nodiscard]] std::string CheckInvariants(std::size_t objects)
      MC_EXCLUDES(ring_mutex_, policy_mutex_);

 private:
  enum class Kind : std::uint8_t { kChain, kPut, kReady, kPin, kLease, kGone };
  struct Record {
    std::uint64_t hash = 0;
    union {
      std::int64_t until_ns = 0;  // kLease.
      std::uint64_t parent_hash;  // kPut.
    };
    Slot slot = kNoSlot;
    Slot parent = kNoSlot;    // kPut.
    std::uint32_t count = 0;  // kChain: keys; kPut: placements.
    Kind kind = Kind::kChain;
    PinClass pin = PinClass::kNone;
  };
  struct ChainHeader {
    ChainEvent event;  // Without its keys.
    Instant leased_until;
  };
  struct SlotState {
    std::int64_t protected_until_ns = 0;
    std::uint32_t tag = 0;  // Of its hash; 0 = unused.
  };
  struct Ring {
    std::vector<Record> records;
    std::vector<ChainHeader> chains;
    std::vector<ChainKey> keys;         // Of all chains.
    std::vector<Placement> placements;  // Of all puts.

    [[nodiscard]] std::size_t size() const {
      return records.size() + keys.size() + placements.size();
    }
  };
  class Guard;

  static std::uint32_t TagOf(std::uint64_t hash) { return static_cast<std::uint32_t>(hash) | 1U; }
  // The slot's state if it still belongs to the object of that hash, else null.
  SlotState* StateOf(ChainKey key) MC_REQUIRES(policy_mutex_);
  // Notes so many ends of this object that came before its put (above 0), or that are still to come
  // although its slot has been told to be another's (below).
  void AddEnds(Slot slot, std::uint32_t tag, int count) MC_REQUIRES(policy_mutex_);
  [[nodiscard]] int Ends(Slot slot, std::uint32_t tag) const MC_REQUIRES(policy_mutex_);
  void Drain() MC_REQUIRES(policy_mutex_) MC_EXCLUDES(ring_mutex_);
  void PlayChain(const ChainHeader& chain, std::span<ChainKey> keys) MC_REQUIRES(policy_mutex_);
  void PlayPut(const Record& put, std::span<const Placement> placements) MC_REQUIRES(policy_mutex_);
  void PlayOther(const Record& record) MC_REQUIRES(policy_mutex_);

  Mutex policy_mutex_;
  const std::unique_ptr<EvictionPolicy> policy_;
  const bool needs_parents_;
  SlotArray<SlotState> slots_ MC_GUARDED_BY(policy_mutex_);
  // What threads tell of one slot may change places. By slot and tag, see AddEnds; never 0.
  std::unordered_map<std::uint64_t, int> ends_ MC_GUARDED_BY(policy_mutex_);
  Ring draining_ MC_GUARDED_BY(policy_mutex_);

  Mutex ring_mutex_;
  Ring ring_ MC_GUARDED_BY(ring_mutex_);
};

}  // namespace mooncake::store
