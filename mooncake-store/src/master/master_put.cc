// Writing: space and a name first, the bytes by the client, the end last.
#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>

#include "mooncake-store/src/master/master_scratch.h"

namespace mooncake::store {

namespace {

// An extent counts its 64-byte units in 32 bits.
constexpr std::uint64_t kMaxObjectBytes = std::uint64_t{1} << 37U;

// By what a repeated request is known: the call and the window. 0: the caller named no call.
std::uint64_t CallId(const ChainPosition& chain) {
  return chain.chain_id == 0 ? 0
                             : std::rotl(chain.chain_id * 0x9e3779b97f4a7c15U, 31) + chain.position;
}

}  // namespace

// One BatchPutStart while it runs.
struct Master::PutBatch {
  const BatchPutStartRequest& request;
  Instant now;
  BatchPutStartReply& reply;
  Scratch& scratch;
  PlaceRequest place;
  std::uint32_t most_replicas = 1;  // As many as asked for, or as there are names.
  std::uint64_t first_version = 0;  // Of this batch.
  std::uint64_t call_id = 0;        // Of this window of the call.
  Slot parent_of_first = kNoSlot;   // Of the first key.
  Duration soft_pin_ttl{};

  // What the first refusals have taught, so that a full store is weighed once a batch: no object
  // on these segments may go, and nothing this large finds room even so.
  SegmentMask nothing_goes;
  std::uint64_t refused_bytes = std::numeric_limits<std::uint64_t>::max();
  std::optional<Instant> earliest;  // When something may go.
};

StoreCode Master::CheckConfig(const BatchPutStartRequest& request, const MasterOptions& options) {
  const ReplicateConfigView& config = request.config;
  const bool group_count_wrong =
      !config.group_ids.empty() && config.group_ids.size() != request.keys.size();
  if ((config.replica_num == 0 && config.nof_replica_num == 0 && config.dfs_replica_num == 0) ||
      config.nof_replica_num > 0 || config.dfs_replica_num > 1 ||
      (config.dfs_replica_num > 0 && config.replica_num == 0) || config.replica_num > 255 ||
      group_count_wrong) {
    return StoreCode::kInvalidParams;
  }
  if (config.dfs_replica_num > 0) {
    return StoreCode::kDfsServiceUnavailable;
  }
  if (config.soft_pin_ttl_ms) {
    const auto most = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(options.max_soft_pin_ttl).count());
    if (config.soft_pin_action != SoftPinAction::kEnable || *config.soft_pin_ttl_ms > most) {
      return StoreCode::kInvalidParams;
    }
  }
  return StoreCode::kOk;
}

std::uint64_t Master::NextVersion(Instant now) {
  const std::uint64_t by_time =
      options_.first_version + static_cast<std::uint64_t>(now.time_since_epoch().count());
  std::uint64_t last = last_version_.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    next = std::max(last + 1, by_time);
  } while (!last_version_.compare_exchange_weak(last, next, std::memory_order_relaxed));
  return next;
}

bool Master::OverMetadataLimit() const {
  return options_.metadata_limit_bytes != 0 &&
         counters_.metadata_bytes.load(std::memory_order_relaxed) >= options_.metadata_limit_bytes;
}

void Master::Handle(const BatchPutStartRequest& request, Instant now, BatchPutStartReply& reply) {
  if (!BeginReply(request, reply, request.keys.size() == request.sizes_bytes.size())) {
    return;
  }
  CountCaller(request.caller);
  if (const StoreCode code = CheckConfig(request, options_); code != StoreCode::kOk) {
    reply.results.assign(request.keys.size(), {.code = code});
    return;
  }
  reply.results.assign(request.keys.size(), {});
  FreeRested(now);
  ScratchLease lease(*this);
  PutBatch batch{.request = request, .now = now, .reply = reply, .scratch = *lease};
  StartBatch(batch);
  hub_.DrainIfGrown();
}

void Master::StartBatch(PutBatch& batch) {
  const ReplicateConfigView& config = batch.request.config;
  Scratch& scratch = batch.scratch;
  const std::span<const std::string_view> preferred = config.preferred_segment.empty()
                                                          ? std::span(config.preferred_segments)
                                                          : std::span(&config.preferred_segment, 1);
  batch.place = {.replicas = config.replica_num,
                 .strategy = options_.allocation_strategy,
                 .preferred = preferred,
                 .usable = Readable(batch.request.caller.client, batch.now, scratch),
                 .now = batch.now};
  if (config.prefer_alloc_in_same_node ||
      options_.allocation_strategy == AllocationStrategy::kLocalFirst) {
    batch.place.near_host = config.host_id;
  }
  batch.most_replicas = std::min(config.replica_num, UsableNames(*scratch.view, batch.place));
  batch.first_version = last_version_.load(std::memory_order_relaxed) + 1;
  batch.call_id = CallId(batch.request.chain);
  batch.soft_pin_ttl = config.soft_pin_ttl_ms
                           ? Duration(std::chrono::milliseconds(*config.soft_pin_ttl_ms))
                           : options_.soft_pin_ttl;

  Group(batch.request, scratch);
  scratch.puts.assign(batch.request.keys.size(), {});
  scratch.placements.clear();
  scratch.retry.clear();
  VisitShards(scratch, [&](Shard& shard, std::span<const std::uint32_t> indices) {
    for (const std::uint32_t index : indices) {
      if (!StartOne(batch, shard, index, false)) {
        scratch.retry.push_back(index);
      }
    }
  });
  // Each key is of use only with those before it: room is made in their order.
  std::ranges::sort(scratch.retry);
  if (!scratch.retry.empty() && hub_.NeedsParents()) {
    batch.parent_of_first =
        chains_.ParentOfFirst(EventOf(batch.request.caller, batch.request.chain, scratch.keys))
            .slot;
  }
  for (std::size_t at = 0; at < scratch.retry.size(); ++at) {
    const std::uint32_t index = scratch.retry[at];
    const std::uint64_t size = batch.request.sizes_bytes[index];
    if (size >= batch.refused_bytes || !StartInFull(batch, at)) {
      ++counters_.put_alloc_failures;
      batch.reply.results[index].code = StoreCode::kNoAvailableHandle;
      batch.refused_bytes = std::min(batch.refused_bytes, size);
    }
  }
  if (batch.refused_bytes != std::numeric_limits<std::uint64_t>::max()) {
    batch.reply.full = Fullness(batch.now, batch.earliest);
  }
  TellPut(batch);
}

bool Master::StartOne(PutBatch& batch, Shard& shard, std::size_t index,
                      bool take_fewer) MC_NO_THREAD_SAFETY_ANALYSIS {  // The shard is locked.
  Scratch& scratch = batch.scratch;
  const BatchPutStartRequest& request = batch.request;
  PutStartResult& result = batch.reply.results[index];
  const std::string_view text = request.keys[index];
  const std::uint64_t size = request.sizes_bytes[index];
  if (text.empty() || text.size() > kMaxKeyBytes || size == 0 || size > kMaxObjectBytes) {
    result.code = StoreCode::kInvalidParams;
    return true;
  }
  const KeyRef key{scratch.hashes[index], kDefaultTenant, text};
  const std::string_view group =
      request.config.group_ids.empty() ? std::string_view{} : request.config.group_ids[index];
  const Shard::PutDecision decision = shard.DecidePut({.key = key,
                                                       .client = request.caller.client,
                                                       .call_id = batch.call_id,
                                                       .size_bytes = size,
                                                       .upsert = request.upsert,
                                                       .group = group},
                                                      batch.place.usable, batch.now);
  result.code = decision.code;
  scratch.keys[index].slot = decision.present;  // To those behind it in its chain it is there.
  if (decision.repeated != nullptr) {
    if (decision.repeated->version >= batch.first_version) {
      result.code = StoreCode::kObjectAlreadyExists;  // The same key earlier in this batch.
      return true;
    }
    ObjectLocation location;
    const std::vector<std::uint8_t> all(scratch.view->by_number.size(), 1);
    AppendLocation(*decision.repeated, *scratch.view, all, location, batch.reply.table);
    result = {.version = decision.repeated->version, .replicas = location.replicas};
    return true;
  }
  if (decision.code != StoreCode::kOk) {
    return true;
  }
  scratch.placed.clear();
  if (!take_fewer && OverMetadataLimit()) {
    return false;
  }

  batch.place.bytes = size;
  batch.place.key_hash = key.hash;
  batch.place.random = random_.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t have = Place(*scratch.view, batch.place, scratch.placed);
  // A segment whose unmounting began after the view was taken may already have been swept here.
  const bool stale = std::ranges::any_of(scratch.placed, [&](const PlacedExtent& extent) {
    return scratch.view->by_number[extent.segment]->status != SegmentStatus::kOk;
  });
  if (stale || have == 0 || (have < batch.most_replicas && !take_fewer)) {
    for (const PlacedExtent& extent : scratch.placed) {
      scratch.view->by_number[extent.segment]->space.Free(std::span(&extent.range, 1));
    }
    if (stale) {
      scratch.placed.clear();
    }
    return false;  // What is left in `placed` tells where there was room.
  }
  if (decision.drop) {
    shard.Apply(*decision.drop);
  }
  if (have < request.config.replica_num) {
    ++counters_.put_partial_allocations;
  }
  const ObjectEvent event{.kind = ObjectEventKind::kPutStarted,
                          .slot = shard.NextSlot(),
                          .now = batch.now,
                          .hash = key.hash,
                          .tenant = key.tenant,
                          .key = text,
                          .version = NextVersion(batch.now),
                          .size_bytes = size,
                          .client = request.caller.client,
                          .data_type = request.config.data_type,
                          .from_put = decision.from_put,
                          .hard_pinned = request.config.with_hard_pin,
                          .call_id = batch.call_id,
                          .group = group.empty() ? std::string_view(decision.group) : group,
                          .soft_pin_action = request.config.soft_pin_action,
                          .soft_pin_ttl = batch.soft_pin_ttl,
                          .extents = scratch.placed};
  shard.Apply(event);
  const ObjectRecord& object = *shard.At(event.slot);
  result.version = event.version;
  result.code = StoreCode::kOk;
  ReplicaTable& table = batch.reply.table;
  result.replicas = {static_cast<std::uint32_t>(table.replicas.size()), have};
  int replica = -1;
  for (const PlacedExtent& extent : scratch.placed) {
    if (static_cast<int>(extent.replica) != replica) {
      replica = extent.replica;
      table.replicas.push_back({.first_extent = static_cast<std::uint32_t>(table.extents.size())});
    }
    table.extents.push_back(
        {.segment = extent.segment,
         .incarnation = scratch.view->by_number[extent.segment]->identity.incarnation,
         .offset_bytes = extent.range.offset_bytes,
         .length_bytes = extent.range.length_bytes});
    ++table.replicas.back().extent_count;
  }
  scratch.keys[index].slot = event.slot;
  EvictionHub::Put& put = scratch.puts[index];
  put.key = scratch.keys[index];
  put.pin = object.hard_pinned != 0 ? PinClass::kHard : PinClass::kNone;
  put.first_placement = static_cast<std::uint32_t>(scratch.placements.size());
  put.placement_count = AppendPlacements(object, scratch.placements);
  return true;
}

// One eviction may free what the rest of the batch needs too, within bounds.
std::uint64_t Master::BytesAhead(const PutBatch& batch, std::size_t at) const {
  const auto most = static_cast<std::uint64_t>(
      options_.eviction_ratio * static_cast<double>(batch.scratch.view->capacity_bytes));
  std::uint64_t ahead = 0;
  for (++at; at < batch.scratch.retry.size() && ahead < most; ++at) {
    ahead += RoundUpToSpaceUnits(batch.request.sizes_bytes[batch.scratch.retry[at]]);
  }
  return std::min(ahead, most);
}

// A key for which the first try found no room.
bool Master::StartInFull(PutBatch& batch, std::size_t at) {
  Scratch& scratch = batch.scratch;
  const std::size_t index = scratch.retry[at];
  // What it hangs on must not go to make room for it.
  const Slot keep = index == 0 ? batch.parent_of_first : scratch.keys[index - 1].slot;
  const std::uint64_t size = batch.request.sizes_bytes[index];
  const bool could_fit = RoundUpToSpaceUnits(size) <= scratch.view->capacity_bytes;
  bool made_room = false;
  for (bool preferred_only = !batch.place.preferred.empty(), more = could_fit;;) {
    // The view may be old: what it shows may have been unmounted, or more may be there.
    batch.place.usable = Readable(batch.request.caller.client, batch.now, scratch);
    batch.most_replicas =
        std::min(batch.request.config.replica_num, UsableNames(*scratch.view, batch.place));
    {
      Shard& shard = ShardOf(scratch.hashes[index]);
      const MutexLock lock(shard.mutex());
      const bool done = StartOne(batch, shard, index, !more);
      shard.Flush();
      if (done) {
        return true;
      }
    }
    if (!more) {
      return false;
    }
    const bool by_metadata = OverMetadataLimit();
    counters_.evictions_for_metadata += by_metadata ? 1 : 0;
    const std::uint32_t have = scratch.placed.empty() ? 0 : scratch.placed.back().replica + 1U;
    const SegmentMask where =
        WhereRoomHelps(*scratch.view, batch.place, scratch.placed, preferred_only);
    const std::uint32_t missing = batch.most_replicas > have ? batch.most_replicas - have : 1;
    const std::uint64_t ahead = made_room || by_metadata ? 0 : BytesAhead(batch, at);
    const std::uint64_t need = by_metadata ? 1 : RoundUpToSpaceUnits(size) * missing + ahead;
    if (!batch.nothing_goes.HasAll(where) &&
        MakeRoom(where, need, keep, batch.now, batch.earliest)) {
      made_room = true;
      continue;
    }
    batch.nothing_goes.Add(where);
    if (preferred_only) {
      preferred_only = false;
    } else {
      more = false;
    }
  }
}

void Master::TellPut(PutBatch& batch) {
  Scratch& scratch = batch.scratch;
  if (hub_.NeedsParents()) {
    scratch.parents.assign(scratch.keys.size(), {});
    chains_.OnPut(EventOf(batch.request.caller, batch.request.chain, scratch.keys),
                  scratch.parents);
    for (std::size_t index = 0; index < scratch.puts.size(); ++index) {
      scratch.puts[index].parent = scratch.parents[index];
    }
  }
  std::erase_if(scratch.puts, [](const EvictionHub::Put& put) { return put.key.slot == kNoSlot; });
  if (!scratch.puts.empty()) {
    ApplyRecency(
        {.kind = RecencyEventKind::kPut, .puts = scratch.puts, .placements = scratch.placements});
  }
}

void Master::Handle(const BatchPutEndRequest& request, Instant now, BatchPutEndReply& reply) {
  if (!BeginReply(request, reply, request.keys.size() == request.endings.size())) {
    return;
  }
  ScratchLease lease(*this);
  Scratch& scratch = *lease;
  CountCaller(request.caller);
  reply.codes.assign(request.keys.size(), StoreCode::kOk);
  Group(request, scratch);
  Instant pin_end = Instant::max();
  VisitShards(scratch, [&](Shard& shard,
                           std::span<const std::uint32_t> indices) MC_NO_THREAD_SAFETY_ANALYSIS {
    for (const std::uint32_t index : indices) {
      const Shard::Decision decision =
          shard.DecideEnd({scratch.hashes[index], kDefaultTenant, request.keys[index]},
                          request.caller.client, request.endings[index], now);
      reply.codes[index] = decision.code;
      if (!decision.event) {
        continue;
      }
      shard.Apply(*decision.event);
      if (decision.event->kind == ObjectEventKind::kCommitted) {
        scratch.keys[index].slot = decision.event->slot;
      }
    }
    pin_end = std::min(pin_end, shard.NextPinEnd());
  });
  if (pin_end.time_since_epoch().count() < next_pin_end_ns_.load(std::memory_order_relaxed)) {
    next_pin_end_ns_ = pin_end.time_since_epoch().count();
  }
  scratch.ready.clear();
  std::ranges::copy_if(scratch.keys, std::back_inserter(scratch.ready),
                       [](const ChainKey& key) { return key.slot != kNoSlot; });
  if (!scratch.ready.empty()) {
    ApplyRecency({.kind = RecencyEventKind::kReady, .ready = scratch.ready});
  }
  hub_.DrainIfGrown();
}

}  // namespace mooncake::store
