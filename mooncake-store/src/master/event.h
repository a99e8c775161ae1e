// What changes a master: everything that a shard, the segment table, the client monitor or the
// eviction policy does is one of these events, decided first and applied then. Whoever listens
// hears each event as it is applied; applied in the same order to an empty master, they rebuild it.
//
// Two classes. Durable: what a restarted or standby master must know. Volatile: leases, writes in
// flight, recency, liveness.
//
// Thread-safety: values; views in them last for the call that hands them over.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/uuid.h"
#include "mooncake-store/src/master/eviction/hub.h"
#include "mooncake-store/src/master/object_table.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

enum class ObjectEventKind : std::uint8_t {
  kPutStarted,    // Volatile. Space is taken; a fresh key is known, but not readable.
  kPutDropped,    // Volatile. A write that had not ended is given up.
  kCommitted,     // Durable. A write ended: the object is readable, an older version is gone.
  kLeased,        // Volatile.
  kRemoved,       // Durable.
  kReplicasLost,  // Durable. Those on `segment`; the object too, if none is left.
  kPinEnded,      // Volatile. A soft pin has run out.
};

enum class RemoveReason : std::uint8_t { kAsked, kEvicted, kRevoked, kReplaced, kTimedOut };

struct ObjectEvent {
  ObjectEventKind kind = ObjectEventKind::kLeased;
  RemoveReason reason = RemoveReason::kAsked;  // kRemoved, kPutDropped.
  Slot slot = kNoSlot;
  Instant now;
  // kLeased: the lease's end. kRemoved, kReplicasLost, kPutDropped, kCommitted (of the version
  // replaced): until then its ranges are given to nobody.
  Instant until;

  LeaseUse use = LeaseUse::kRead;  // kLeased.

  // Of the object; kPutStarted and kCommitted.
  std::uint64_t hash = 0;
  std::uint32_t tenant = 0;
  std::string_view key;
  std::uint64_t version = 0;
  std::uint64_t size_bytes = 0;
  Uuid client;
  std::uint8_t data_type = 0;
  bool from_put = true;
  bool hard_pinned = false;

  // kPutStarted only.
  std::uint64_t call_id = 0;
  std::string_view group;
  SoftPinAction soft_pin_action = SoftPinAction::kPreserve;
  Duration soft_pin_ttl{};  // kEnable; zero = not pinned.
  std::span<const PlacedExtent> extents;

  std::optional<std::uint64_t> checksum;  // kCommitted.
  SegmentNumber segment = 0;              // kReplicasLost.
};

enum class SegmentEventKind : std::uint8_t { kMounted, kStatus, kGone };  // All durable.

struct SegmentEvent {
  SegmentEventKind kind = SegmentEventKind::kMounted;
  Instant now;
  SegmentIdentity identity;
  SegmentInfo info;                                  // kMounted.
  Uuid owner;                                        // kMounted.
  Instant quiet_until;                               // kMounted: nothing is placed before.
  SegmentStatus status = SegmentStatus::kUndefined;  // kStatus.
  bool owner_left = false;                           // kStatus kUnmounting: by its owner's wish.
  Instant unmount_at;                                // kStatus kGracefullyUnmounting.
};

enum class ClientEventKind : std::uint8_t { kSeen, kLost };  // Volatile.

struct ClientEvent {
  ClientEventKind kind = ClientEventKind::kSeen;
  Uuid client;
  Instant now;
};

// Segments that a client could not read. Volatile.
struct HealthEvent {
  Uuid client;
  std::span<const SegmentIdentity> segments;
  Instant now;
};

// What the eviction policy is told besides what follows from object events. Volatile.
enum class RecencyEventKind : std::uint8_t { kLookedUp, kPut, kReady };

struct RecencyEvent {
  RecencyEventKind kind = RecencyEventKind::kLookedUp;
  ChainEvent chain;      // kLookedUp.
  Instant leased_until;  // kLookedUp.
  std::span<const EvictionHub::Put> puts;
  std::span<const Placement> placements;
  std::span<const ChainKey> ready;
};

// Hears every event as it is applied. Object events come under their shard's lock: return quickly,
// call nothing of the master. Events of one shard come in order; those of several, interleaved.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void OnObject(const ObjectEvent& event) = 0;
  virtual void OnSegment(const SegmentEvent& event) = 0;
  virtual void OnClient(const ClientEvent& event) = 0;
  virtual void OnHealth(const HealthEvent& event) = 0;
  virtual void OnRecency(const RecencyEvent& event) = 0;
  // Ranges whose rest ended by then are free again. Volatile.
  virtual void OnRested(Instant now) = 0;
};

}  // namespace mooncake::store
