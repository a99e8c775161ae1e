// The master: all of its state and every decision, without IO. A server hands it decoded requests
// and the time; the simulator does the same.
//
// Thread-safety: any thread; Tick() and Step() from one at a time each.
// Determinism:   called from one thread, equal options and equal calls give equal answers.
// Locks:         a shard's first, one at a time; below it those of segments, groups and eviction.
//                Nothing is called back while one is held, but the EventSink.
// Time:          `now` must not go back between calls.
// Memory:        about 200 bytes an object with a 42-byte key; given back with the object.
//
// Each Handle() clears the reply and fills it. A failure of the whole message is reply.code; keys
// have their own codes. Batches are checked against the bounds of messages.h.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/clients.h"
#include "mooncake-store/src/master/event.h"
#include "mooncake-store/src/master/eviction/chain_tracker.h"
#include "mooncake-store/src/master/eviction/hub.h"
#include "mooncake-store/src/master/health.h"
#include "mooncake-store/src/master/key_pattern.h"
#include "mooncake-store/src/master/options.h"
#include "mooncake-store/src/master/placement.h"
#include "mooncake-store/src/master/segments.h"
#include "mooncake-store/src/master/shard.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

// Work that visits every object, in steps that hold a shard for some tens of microseconds. The
// owner calls Master::Step() until it is done, and serves others between.
struct ObjectSweep {
  std::optional<KeyPattern> pattern;  // Only keys that match.
  bool force = false;
  std::uint32_t shard = 0;
  std::size_t position = 0;  // In the shard.
  std::uint64_t removed = 0;
  std::uint64_t reply_bytes = 0;  // About what StepGet() has appended takes in a message.
};

// A segment as the admin interface shows it.
struct SegmentReport {
  QueriedSegment segment;
  std::uint64_t used_bytes = 0;
  std::uint64_t capacity_bytes = 0;
  bool quarantined = false;  // Readers could not reach it.
};

class Master {
 public:
  Master(const MasterOptions& options, std::unique_ptr<EvictionPolicy> policy,
         EventSink* sink = nullptr);
  ~Master();
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  // ---- Liveness and segments (master_segments.cc) ----
  void Handle(const PingRequest& request, Instant now, PingReply& reply);
  void Handle(const MountSegmentRequest& request, Instant now, MountSegmentReply& reply);
  void Handle(const ReMountSegmentsRequest& request, Instant now, ReMountSegmentsReply& reply);
  void Handle(const UnmountSegmentRequest& request, Instant now, UnmountSegmentReply& reply);
  void Handle(const QuerySegmentsRequest& request, Instant now, QuerySegmentsReply& reply);
  void Handle(const ReportFailedReadsRequest& request, Instant now, ReportFailedReadsReply& reply);

  // ---- Lookups (master_lookup.cc) ----
  void Handle(const BatchExistRequest& request, Instant now, BatchExistReply& reply);
  void Handle(const BatchGetReplicasRequest& request, Instant now, BatchGetReplicasReply& reply);
  // The same for an onlooker: leases nothing, counts nothing, and eviction does not hear of it.
  void Peek(const BatchGetReplicasRequest& request, Instant now, BatchGetReplicasReply& reply);

  // ---- Writing (master_put.cc) ----
  void Handle(const BatchPutStartRequest& request, Instant now, BatchPutStartReply& reply);
  void Handle(const BatchPutEndRequest& request, Instant now, BatchPutEndReply& reply);

  // ---- Removing (master_remove.cc) ----
  void Handle(const BatchRemoveRequest& request, Instant now, BatchRemoveReply& reply);
  void Handle(const BatchReplicaClearRequest& request, Instant now, BatchReplicaClearReply& reply);

  // ---- Work on all objects (master_sweep.cc) ----
  // Errors: kInvalidParams when the pattern is none.
  [[nodiscard]] static StoreCode Begin(const RemoveByRegexRequest& request, ObjectSweep& sweep);
  [[nodiscard]] static StoreCode Begin(const RemoveAllRequest& request, ObjectSweep& sweep);
  [[nodiscard]] static StoreCode Begin(const GetReplicasByRegexRequest& request,
                                       ObjectSweep& sweep);
  // One step of a removal; sweep.removed counts. True when it is done. Leased objects stay unless
  // sweep.force; those being written stay.
  [[nodiscard]] bool StepRemove(ObjectSweep& sweep, Instant now);
  // One step of a lookup; appends to `reply` what is readable for `client`, and leases it. Ends
  // early, with kBufferOverflow and nothing else, when that is more than one answer can carry.
  [[nodiscard]] bool StepGet(ObjectSweep& sweep, const Uuid& client, Instant now,
                             GetReplicasByRegexReply& reply);
  // One step of listing the keys that are readable, without leasing them.
  [[nodiscard]] bool StepList(ObjectSweep& sweep, std::vector<std::string>& keys);

  // What the passing of time brings: clients that died, segments to drop (at most `budget` objects
  // a call), writes given up, pins ended, ranges that are free again. True when there is more to do
  // right now. Every 100 ms or so; late ticks delay, no more.
  bool Tick(Instant now, std::size_t budget = 1024);

  // Applies an event that another master, with the same options, has emitted. Before any request.
  void Replay(const ObjectEvent& event);
  void Replay(const SegmentEvent& event);
  void Replay(const ClientEvent& event);
  void Replay(const HealthEvent& event);
  void Replay(const RecencyEvent& event);
  void ReplayRested(Instant now);

  // ---- For the admin interface and tests ----
  [[nodiscard]] const MasterCounters& counters() const { return counters_; }
  [[nodiscard]] const MasterOptions& options() const { return options_; }
  [[nodiscard]] std::vector<SegmentReport> ReportSegments(Instant now) const;
  [[nodiscard]] std::size_t client_count() const { return clients_.size(); }
  // Bytes occupied on readable segments, and their capacity.
  struct Usage {
    std::uint64_t used_bytes = 0;
    std::uint64_t capacity_bytes = 0;
  };
  [[nodiscard]] Usage MeasureUsage() const;
  // Memory of the shards' tables.
  [[nodiscard]] std::size_t MeasureMemory();
  // All state as text, for comparisons.
  [[nodiscard]] std::string Dump(Instant now);
  // Checks that space and objects agree; the text of the first contradiction, else empty. Slow.
  [[nodiscard]] std::string CheckInvariants();

 private:
  struct Scratch;
  class ScratchLease;
  struct PutBatch;

  [[nodiscard]] Shard& ShardOf(std::uint64_t hash) { return *shards_[hash >> shard_shift_]; }
  [[nodiscard]] Shard& ShardOfSlot(Slot slot) { return *shards_[slot % options_.shard_count]; }

  // Hashes the keys and orders their indices by shard.
  template <typename Request>
  void Group(const Request& request, Scratch& scratch) const;
  // Calls visit(shard, indices) for each shard that has keys, with the shard locked.
  template <typename Visit>
  void VisitShards(Scratch& scratch, Visit visit);
  // What `client` can read, by segment number; valid until the scratch is used again.
  ReadableSegments Readable(const Uuid& client, Instant now, Scratch& scratch);
  void CountCaller(const Caller& caller);
  // The first call says when this master's life began.
  void NoteBegin(Instant now);
  // When all leases have ended that an earlier life of this master may have given: until then
  // memory that may have been mounted before is left alone.
  [[nodiscard]] Instant EarlierLeasesUntil() const {
    return Instant(Duration(earlier_leases_until_ns_.load(std::memory_order_relaxed)));
  }
  void Seen(const Uuid& client, Instant now);
  void ApplySegment(const SegmentEvent& event);
  // Applies it if the segment is still mounted, after `only_if(segment)` agreed.
  template <typename Condition>
  bool ChangeSegment(const SegmentEvent& event, Condition only_if);
  void ApplyRecency(const RecencyEvent& event);
  void FreeRested(Instant now);

  MountSegmentReply Mount(const SegmentInfo& info, const Uuid& owner, Instant now,
                          Instant quiet_until);

  // Looks up each key, and calls on_key(shard, index, found, readable) with the shard locked. What
  // is found has been leased for `use` by then; groups and the policy hear of it at the end.
  template <typename Request, typename OnKey>
  void LookUp(const Request& request, LeaseUse use, bool reads, Instant now, Scratch& scratch,
              OnKey on_key);
  // What the policy hears of a call's keys.
  [[nodiscard]] static ChainEvent EventOf(const Caller& caller, const ChainPosition& chain,
                                          std::span<const ChainKey> keys);
  // Lookups, in the order of the keys: what was found was leased already. `reads`: see
  // ClientChains::OnLookup().
  void TellLookedUp(const Caller& caller, const ChainPosition& chain, bool reads,
                    Instant leased_until, Scratch& scratch);
  // Whether a read of the object must renew its whole group; noted in the scratch.
  void NoteGroup(Shard& shard, const ObjectRecord& object, Instant now, Scratch& scratch);
  void RenewGroups(Instant until, Instant now, Scratch& scratch);
  static void AppendLocation(const ObjectRecord& object, const SegmentView& view,
                             ReadableSegments readable, ObjectLocation& location,
                             ReplicaTable& table);

  [[nodiscard]] static StoreCode CheckConfig(const BatchPutStartRequest& request,
                                             const MasterOptions& options);
  void StartBatch(PutBatch& batch);
  // False: room has to be made first.
  [[nodiscard]] bool StartOne(PutBatch& batch, Shard& shard, std::size_t index, bool take_fewer);
  // For the key that is scratch.retry[at]. False: there is no room, and nothing may go.
  [[nodiscard]] bool StartInFull(PutBatch& batch, std::size_t at);
  // What the keys behind scratch.retry[at] need, as far as one eviction may free it.
  [[nodiscard]] std::uint64_t BytesAhead(const PutBatch& batch, std::size_t at) const;
  void TellPut(PutBatch& batch);
  [[nodiscard]] std::uint64_t NextVersion(Instant now);
  [[nodiscard]] bool OverMetadataLimit() const;

  // ---- Making room (master_evict.cc) ----
  // Drops victims on the spot. False when nothing may go; *earliest then says when something might.
  [[nodiscard]] bool MakeRoom(const SegmentMask& where, std::uint64_t bytes, Slot keep, Instant now,
                              std::optional<Instant>& earliest);
  // Drops what the policy has named, and with it its group, whole: a member that is leased or being
  // written keeps them all for as long. A pin keeps only the object that has it.
  struct Freed {
    bool any = false;
    std::uint64_t bytes = 0;  // Where they are needed.
  };
  void Evict(const PickRequest& request, Slot slot, Instant now, Freed& freed);
  void EndPins(Instant now);
  [[nodiscard]] FullHint Fullness(Instant now, std::optional<Instant> earliest) const;

  // The next keys of the sweep that match its pattern; true when there are no more after them. The
  // pattern is tried with no shard locked: it may take its time.
  [[nodiscard]] bool NextMatches(ObjectSweep& sweep, std::vector<std::string>& keys);

  void DropLostClients(Instant now);
  // At most `budget` objects; the rest of the budget.
  std::size_t DropSegments(Instant now, std::size_t budget);
  std::size_t EndTimeouts(Instant now, std::size_t budget);

  const MasterOptions options_;
  MasterCounters counters_;
  EventSink* const sink_;
  SegmentTable segments_;
  GroupTable groups_;
  ClientMonitor clients_;
  SegmentHealth health_;
  EvictionHub hub_;
  ChainTracker chains_;
  std::vector<std::unique_ptr<Shard>> shards_;
  unsigned shard_shift_ = 0;
  std::atomic<std::uint64_t> last_version_;
  std::atomic<std::uint64_t> random_;
  // See EarlierLeasesUntil(); 0 before NoteBegin().
  std::atomic<std::int64_t> earlier_leases_until_ns_{0};
  // No soft pin ends before.
  std::atomic<std::int64_t> next_pin_end_ns_;

  // Held from the decision on segments to its effect; above the table's own locks.
  Mutex segments_change_mutex_;

  Mutex scratch_mutex_;
  std::vector<std::unique_ptr<Scratch>> scratches_ MC_GUARDED_BY(scratch_mutex_);
};

}  // namespace mooncake::store
