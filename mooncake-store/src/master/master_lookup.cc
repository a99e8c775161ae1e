// Lookups: is it there, where is it. Each grants a lease.
#include <algorithm>
#include <limits>

#include "mooncake-store/src/master/master_scratch.h"

namespace mooncake::store {

namespace {

std::uint64_t Milliseconds(Duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

ChainEvent Master::EventOf(const Caller& caller, const ChainPosition& chain,
                           std::span<const ChainKey> keys) {
  // Policies divide by the total and count from the position.
  const auto count = static_cast<std::uint32_t>(keys.size());
  const std::uint32_t position =
      std::min(chain.position, std::numeric_limits<std::uint32_t>::max() - count);
  return {.client = std::hash<Uuid>{}(caller.client),
          .chain_id = chain.chain_id,
          .position = position,
          .total = std::max(chain.total, position + count),
          .keys = keys};
}

void Master::TellLookedUp(const Caller& caller, const ChainPosition& chain, bool reads,
                          Instant leased_until, Scratch& scratch) {
  ChainEvent event = EventOf(caller, chain, scratch.keys);
  event.again = hub_.NeedsParents() && chains_.OnLookup(event, reads);
  ApplyRecency({.kind = RecencyEventKind::kLookedUp, .chain = event, .leased_until = leased_until});
}

void Master::NoteGroup(Shard& shard, const ObjectRecord& object, Instant now, Scratch& scratch)
    MC_NO_THREAD_SAFETY_ANALYSIS {  // The caller holds the shard's lock.
  const GroupNumber group = shard.GroupOf(object);
  if (group == kNoGroup) {
    return;
  }
  const Duration left{object.LeaseUntilNs() - now.time_since_epoch().count()};
  if (groups_.TakeNeedsRefresh(group) || left <= options_.lease_ttl / 2) {
    scratch.groups.push_back(group);
  }
}

void Master::RenewGroups(Instant until, Instant now, Scratch& scratch) {
  for (const GroupNumber group : scratch.groups) {
    for (const Slot slot : groups_.Members(group)) {
      Shard& shard = ShardOfSlot(slot);
      const MutexLock lock(shard.mutex());
      const ObjectRecord* object = shard.At(slot);
      if (object != nullptr && object->committed != 0 && shard.GroupOf(*object) == group) {
        const ChainKey key{HashKey(object->tenant, object->key()), slot};
        shard.Lease(slot, LeaseUse::kRead, until, now);
        hub_.OnLease(key, until);
      }
    }
  }
  scratch.groups.clear();
}

template <typename Request, typename OnKey>
void Master::LookUp(const Request& request, LeaseUse use, bool reads, Instant now, Scratch& scratch,
                    OnKey on_key) {
  CountCaller(request.caller);
  const ReadableSegments readable = Readable(request.caller.client, now, scratch);
  const Instant until = now + options_.lease_ttl;
  Group(request, scratch);
  VisitShards(scratch, [&](Shard& shard,
                           std::span<const std::uint32_t> indices) MC_NO_THREAD_SAFETY_ANALYSIS {
    for (const std::uint32_t index : indices) {
      const Shard::Found found =
          shard.Lookup({scratch.hashes[index], kDefaultTenant, request.keys[index]}, readable);
      if (found.code == StoreCode::kOk) {
        NoteGroup(shard, *found.object, now, scratch);
        shard.Lease(found.object->slot, use, until, now);
        scratch.keys[index].slot = found.object->slot;
      }
      on_key(shard, index, found, readable);
    }
  });
  TellLookedUp(request.caller, request.chain, reads, until, scratch);
  RenewGroups(until, now, scratch);
  hub_.DrainIfGrown();
}

void Master::Handle(const BatchExistRequest& request, Instant now, BatchExistReply& reply) {
  if (!BeginReply(request, reply)) {
    return;
  }
  reply.lease_ttl_ms = Milliseconds(options_.lease_ttl);
  reply.exists.assign(request.keys.size(), 0);
  ScratchLease lease(*this);
  LookUp(request, LeaseUse::kRead, /*reads=*/false, now, *lease,
         [&](Shard& /*shard*/, std::uint32_t index, const Shard::Found& found,
             ReadableSegments /*readable*/) {
           reply.exists[index] = found.code == StoreCode::kOk ? 1 : 0;
         });
}

void Master::AppendLocation(const ObjectRecord& object, const SegmentView& view,
                            ReadableSegments readable, ObjectLocation& location,
                            ReplicaTable& table) {
  location.code = StoreCode::kOk;
  location.data_type = object.data_type;
  location.from_put = object.from_put != 0;
  location.size_bytes = object.size_bytes;
  location.version = object.version;
  location.replicas = {static_cast<std::uint32_t>(table.replicas.size()), 0};
  bool taken = false;
  ForEachExtent(object, [&](const ExtentRecord& extent, std::uint64_t length, bool first) {
    if (first) {
      taken = Shard::ReplicaReadable(object, extent.replica, readable);
      if (taken) {
        table.replicas.push_back(
            {.first_extent = static_cast<std::uint32_t>(table.extents.size())});
        ++location.replicas.count;
      }
    }
    if (taken) {
      table.extents.push_back({.segment = extent.segment,
                               .incarnation = view.by_number[extent.segment]->identity.incarnation,
                               .offset_bytes = extent.offset_bytes,
                               .length_bytes = length});
      ++table.replicas.back().extent_count;
    }
  });
}

void Master::Handle(const BatchGetReplicasRequest& request, Instant now,
                    BatchGetReplicasReply& reply) {
  if (!BeginReply(request, reply)) {
    return;
  }
  reply.lease_ttl_ms =
      Milliseconds(request.use == LeaseUse::kWhole ? options_.lease_ttl : options_.ReadTtl());
  reply.objects.assign(request.keys.size(), {.code = StoreCode::kObjectNotFound});
  ScratchLease lease(*this);
  Scratch& scratch = *lease;
  std::uint64_t hits = 0;
  std::uint64_t hit_bytes = 0;
  LookUp(request, request.use, /*reads=*/true, now, scratch,
         [&](Shard& shard, std::uint32_t index, const Shard::Found& found,
             ReadableSegments readable) MC_NO_THREAD_SAFETY_ANALYSIS {
           ObjectLocation& location = reply.objects[index];
           location.code = found.code;
           if (found.code != StoreCode::kOk) {
             return;
           }
           AppendLocation(*found.object, *scratch.view, readable, location, reply.table);
           if (const auto checksum = shard.ChecksumOf(*found.object)) {
             location.has_checksum = true;
             location.checksum = *checksum;
           }
           ++hits;
           hit_bytes += location.size_bytes;
         });
  counters_.gets += request.keys.size();
  counters_.get_hits += hits;
  counters_.hit_bytes += hit_bytes;
}

void Master::Peek(const BatchGetReplicasRequest& request, Instant now,
                  BatchGetReplicasReply& reply) {
  if (!BeginReply(request, reply)) {
    return;
  }
  reply.lease_ttl_ms = 0;
  ScratchLease lease(*this);
  Scratch& scratch = *lease;
  reply.objects.assign(request.keys.size(), {.code = StoreCode::kObjectNotFound});
  const ReadableSegments readable = Readable(request.caller.client, now, scratch);
  Group(request, scratch);
  VisitShards(scratch, [&](Shard& shard,
                           std::span<const std::uint32_t> indices) MC_NO_THREAD_SAFETY_ANALYSIS {
    for (const std::uint32_t index : indices) {
      ObjectLocation& location = reply.objects[index];
      const Shard::Found found =
          shard.Lookup({scratch.hashes[index], kDefaultTenant, request.keys[index]}, readable);
      location.code = found.code;
      if (found.code == StoreCode::kOk) {
        AppendLocation(*found.object, *scratch.view, readable, location, reply.table);
      }
    }
  });
}

}  // namespace mooncake::store
