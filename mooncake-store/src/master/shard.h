// The objects whose keys hash here, and every rule about a single object: who may write, read and
// remove it, and when.
//
// Sans-I/O. Decide...() says what is to happen and changes nothing; Apply() changes and decides
// nothing: live, or replayed. The one thing taken before it is applied is space, which the caller
// has from the segments when it makes a kPutStarted event.
//
// Thread-safety: every method wants mutex() held. Below it may be taken: the locks of segments,
// groups and the eviction hub.
//
// Versions. A key has at most one version that is committed and one that is being written. The
// index holds the committed one, or the one being written while there is no other; a version that
// will replace another waits beside the index, so readers see the old bytes whole until the switch.
// Versions are unique and grow with time: version - first_version is when the write began, in
// nanoseconds, give or take one a key.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/event.h"
#include "mooncake-store/src/master/groups.h"
#include "mooncake-store/src/master/object_table.h"
#include "mooncake-store/src/master/options.h"
#include "mooncake-store/src/master/segments.h"

namespace mooncake::store {

// What the shards of a master share.
struct ShardContext {
  const MasterOptions& options;
  MasterCounters& counters;
  SegmentTable& segments;
  GroupTable& groups;
  EvictionHub& hub;
  EventSink* sink = nullptr;  // Nobody listens: null.
};

// A key with its hash and its tenant's number.
struct KeyRef {
  std::uint64_t hash = 0;
  std::uint32_t tenant = 0;
  std::string_view key;
};

// By segment number: 1 where this caller can read. Shorter than the largest number: 0.
using ReadableSegments = std::span<const std::uint8_t>;

class Shard {
 public:
  Shard(std::uint32_t number, const ShardContext& context);

  [[nodiscard]] Mutex& mutex() MC_THREAD_ANNOTATION(lock_returned(mutex_)) { return mutex_; }

  void Prefetch(std::uint64_t hash) const MC_REQUIRES(mutex_) { table_.Prefetch(hash); }
  void PrefetchPlace(std::uint64_t hash) const MC_REQUIRES(mutex_) { table_.PrefetchPlace(hash); }
  void PrefetchRecord(std::uint64_t hash) const MC_REQUIRES(mutex_) { table_.PrefetchRecord(hash); }

  // ---- Reading ----

  // kOk; kObjectNotFound (also when no replica can be reached); kReplicaIsNotReady (being written).
  struct Found {
    StoreCode code = StoreCode::kObjectNotFound;
    const ObjectRecord* object = nullptr;
  };
  [[nodiscard]] Found Lookup(const KeyRef& key, ReadableSegments readable) const
      MC_REQUIRES(mutex_);
  // Whether replica `replica` of the object lies on readable segments only.
  [[nodiscard]] static bool ReplicaReadable(const ObjectRecord& object, std::uint32_t replica,
                                            ReadableSegments readable);
  // A kLeased event, applied. Cheaper than building one: lookups are the hottest path there is.
  // `until` is lease_ttl from `now`.
  void Lease(Slot slot, LeaseUse use, Instant until, Instant now) MC_REQUIRES(mutex_);
  [[nodiscard]] std::optional<std::uint64_t> ChecksumOf(const ObjectRecord& object) const
      MC_REQUIRES(mutex_);
  [[nodiscard]] GroupNumber GroupOf(const ObjectRecord& object) const MC_REQUIRES(mutex_);
  [[nodiscard]] const ObjectRecord* At(Slot slot) const MC_REQUIRES(mutex_) {
    return table_.At(slot);
  }

  // ---- Writing ----

  struct PutRequest {
    KeyRef key;
    Uuid client;
    std::uint64_t call_id = 0;
    std::uint64_t size_bytes = 0;
    bool upsert = false;
    std::string_view group;  // Empty: none asked for.
  };
  struct PutDecision {
    // kOk: write; kObjectAlreadyExists; kInvalidParams (the group of a key cannot be changed).
    StoreCode code = StoreCode::kOk;
    // The same call has this write open already: answer with it again.
    const ObjectRecord* repeated = nullptr;
    // An open write that has to go first.
    std::optional<ObjectEvent> drop;
    // Of the object that has the key now.
    Slot present = kNoSlot;
    // False when it replaces an older version: then its descriptor is not for caching.
    bool from_put = true;
    // Of the version that it will replace.
    std::string group;
  };
  [[nodiscard]] PutDecision DecidePut(const PutRequest& put, ReadableSegments readable,
                                      Instant now) const MC_REQUIRES(mutex_);
  [[nodiscard]] Slot NextSlot() const MC_REQUIRES(mutex_) { return table_.NextSlot(); }

  // What is to be answered, and the change if there is one.
  struct Decision {
    StoreCode code = StoreCode::kOk;
    std::optional<ObjectEvent> event;
  };
  // Errors: kObjectNotFound; kIllegalClient (somebody else writes it); kInvalidWrite (that write is
  // not open any more). Ending a write twice in the same way is no error.
  [[nodiscard]] Decision DecideEnd(const KeyRef& key, const Uuid& client, const PutEnding& ending,
                                   Instant now) const MC_REQUIRES(mutex_);

  // ---- Removing ----

  // Errors: kObjectNotFound; kReplicaIsNotReady (being written); kObjectHasLease unless `force`.
  [[nodiscard]] Decision DecideRemove(const KeyRef& key, bool force, Instant now) const
      MC_REQUIRES(mutex_);
  [[nodiscard]] Decision DecideRemove(const ObjectRecord& object, bool force, Instant now) const
      MC_REQUIRES(mutex_);
  // No event when it may not go (leased, pinned, being written or replaced) or is gone.
  [[nodiscard]] std::optional<ObjectEvent> DecideEvict(Slot slot, Instant now) const
      MC_REQUIRES(mutex_);
  // The next object with bytes on the segment loses them; nothing when there is none.
  [[nodiscard]] std::optional<ObjectEvent> DecideLost(SegmentNumber segment, Instant now) const
      MC_REQUIRES(mutex_);
  // Of an object that this client wrote and nobody leases: the next of its replicas on one of the
  // segments, or all of it if there are no segments given. Again until there is no event.
  [[nodiscard]] std::optional<ObjectEvent> DecideClear(
      const KeyRef& key, const Uuid& client, std::optional<std::span<const SegmentNumber>> segments,
      Instant now) const MC_REQUIRES(mutex_);

  // ---- Passing of time ----

  // The next open write that is older than the release timeout, or soft pin that has ended.
  [[nodiscard]] std::optional<ObjectEvent> DecideTimeout(Instant now) const MC_REQUIRES(mutex_);
  // When the next soft pin ends; Instant::max() if there is none.
  [[nodiscard]] Instant NextPinEnd() const MC_REQUIRES(mutex_) {
    return soft_pins_.empty() ? Instant::max() : soft_pins_.begin()->first;
  }

  void Apply(const ObjectEvent& event) MC_REQUIRES(mutex_);

  // Tells the hub what has gone. Call before the lock is released.
  void Flush() MC_REQUIRES(mutex_);

  template <typename Visit>
  std::size_t ForEachFrom(std::size_t from, std::size_t count, Visit visit) const
      MC_REQUIRES(mutex_) {
    return table_.ForEachFrom(from, count, visit);
  }
  [[nodiscard]] std::size_t memory_bytes() const MC_REQUIRES(mutex_) {
    return table_.memory_bytes();
  }
  // All of its state as text, for comparisons.
  [[nodiscard]] std::string Dump() const MC_REQUIRES(mutex_);

 private:
  // What few objects have.
  struct Rare {
    std::optional<std::uint64_t> checksum;
    GroupNumber group = kNoGroup;
    SoftPinAction action = SoftPinAction::kPreserve;  // While the write is open.
    Duration ttl{};
    Instant soft_pinned_until;  // While soft_pinned.
  };
  struct InFlight {
    Slot slot;
    std::uint64_t version;
  };

  [[nodiscard]] Instant StartOf(const ObjectRecord& object) const;
  // The version being written, or null. `indexed` is what the index holds.
  [[nodiscard]] ObjectRecord* OpenWrite(ObjectRecord* indexed) const MC_REQUIRES(mutex_);
  // When the last reader that was told where the object lies will have stopped reading.
  [[nodiscard]] Instant ReadUntil(const ObjectRecord& object) const;
  [[nodiscard]] ObjectEvent DropEvent(const ObjectRecord& open, RemoveReason reason,
                                      Instant now) const;
  [[nodiscard]] ObjectEvent RemoveEvent(const ObjectRecord& object, RemoveReason reason,
                                        Instant now) const;

  [[nodiscard]] bool IsOpen(const InFlight& write) const MC_REQUIRES(mutex_);
  void TrimInFlight() MC_REQUIRES(mutex_);

  void ApplyStarted(const ObjectEvent& event) MC_REQUIRES(mutex_);
  void ApplyCommitted(const ObjectEvent& event) MC_REQUIRES(mutex_);
  void ApplyRemoved(const ObjectEvent& event) MC_REQUIRES(mutex_);
  void ApplyLost(const ObjectEvent& event) MC_REQUIRES(mutex_);
  void EndSoftPin(ObjectRecord& object) MC_REQUIRES(mutex_);
  // Takes the object out of everything; its ranges rest until `until`.
  void Discard(ObjectRecord& object, std::uint64_t hash, Instant until, Instant now)
      MC_REQUIRES(mutex_);
  // In the counters, when an object comes (+1) or goes (-1).
  void Count(const ObjectRecord& object, bool comes);
  void CountInFlight(const ObjectRecord& object, bool comes);
  [[nodiscard]] std::uint64_t HashOf(const ObjectRecord& object) const;
  Rare& RareOf(ObjectRecord& object) MC_REQUIRES(mutex_);

  const std::uint32_t number_;
  const ShardContext context_;
  Mutex mutex_;
  ObjectTable table_ MC_GUARDED_BY(mutex_);
  std::unordered_map<Slot, Rare> rare_ MC_GUARDED_BY(mutex_);
  // The version being written, by the slot of the committed one that it will replace; and back.
  std::unordered_map<Slot, Slot> replacing_ MC_GUARDED_BY(mutex_);
  std::unordered_map<Slot, Slot> replaces_ MC_GUARDED_BY(mutex_);
  // Open writes in the order they were started, and at most as many again that have ended; the
  // front one is open.
  std::deque<InFlight> in_flight_ MC_GUARDED_BY(mutex_);
  std::size_t open_ MC_GUARDED_BY(mutex_) = 0;
  std::set<std::pair<Instant, Slot>> soft_pins_ MC_GUARDED_BY(mutex_);
  // For the hub.
  std::vector<ChainKey> gone_ MC_GUARDED_BY(mutex_);
  std::vector<std::pair<ChainKey, PinClass>> pinned_ MC_GUARDED_BY(mutex_);
  std::vector<PlacedExtent> released_ MC_GUARDED_BY(mutex_);  // Scratch.
};

}  // namespace mooncake::store
