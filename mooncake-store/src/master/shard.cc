#include "mooncake-store/src/master/shard.h"

#include <algorithm>

#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/master/key_hash.h"

namespace mooncake::store {

Shard::Shard(std::uint32_t number, const ShardContext& context)
    : number_(number), context_(context), table_(number, context.options.shard_count) {}

// ---- Reading ----

bool Shard::ReplicaReadable(const ObjectRecord& object, std::uint32_t replica,
                            ReadableSegments readable) {
  return std::ranges::all_of(object.extents(), [&](const ExtentRecord& extent) {
    return extent.replica != replica ||
           (extent.segment < readable.size() && readable[extent.segment] != 0);
  });
}

namespace {

bool AnyReplicaReadable(const ObjectRecord& object, ReadableSegments readable) {
  for (std::uint32_t replica = 0; replica < object.replica_count; ++replica) {
    if (Shard::ReplicaReadable(object, replica, readable)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Shard::Found Shard::Lookup(const KeyRef& key, ReadableSegments readable) const {
  const ObjectRecord* object = table_.Find(key.hash, key.tenant, key.key);
  if (object == nullptr) {
    return {};
  }
  if (object->committed == 0) {
    return {StoreCode::kReplicaIsNotReady, object};
  }
  if (!AnyReplicaReadable(*object, readable)) {
    return {};
  }
  return {StoreCode::kOk, object};
}

void Shard::Lease(Slot slot, LeaseUse use, Instant until, Instant now) {
  ObjectRecord& object = *table_.At(slot);
  const bool lent_whole =
      object.lent_whole != 0 && object.lease_until_ns > now.time_since_epoch().count();
  object.lent_whole = lent_whole || use == LeaseUse::kWhole ? 1 : 0;
  object.lease_until_ns = std::max(object.lease_until_ns, until.time_since_epoch().count());
  if (context_.sink != nullptr) {
    context_.sink->OnObject(
        {.kind = ObjectEventKind::kLeased, .slot = slot, .now = now, .until = until, .use = use});
  }
}

Instant Shard::ReadUntil(const ObjectRecord& object) const {
  const Instant lease_until{Duration(object.LeaseUntilNs())};
  // The last lease began lease_ttl before its end.
  return object.lent_whole != 0
             ? lease_until
             : lease_until - context_.options.lease_ttl + context_.options.ReadTtl();
}

std::optional<std::uint64_t> Shard::ChecksumOf(const ObjectRecord& object) const {
  if (object.has_rare == 0) {
    return std::nullopt;
  }
  return rare_.at(object.slot).checksum;
}

GroupNumber Shard::GroupOf(const ObjectRecord& object) const {
  return object.has_rare == 0 ? kNoGroup : rare_.at(object.slot).group;
}

// ---- Writing ----

Instant Shard::StartOf(const ObjectRecord& object) const {
  return Instant(
      Duration(static_cast<std::int64_t>(object.version - context_.options.first_version)));
}

ObjectRecord* Shard::OpenWrite(ObjectRecord* indexed) const {
  if (indexed == nullptr || indexed->committed == 0) {
    return indexed;
  }
  if (replacing_.empty()) {
    return nullptr;
  }
  const auto found = replacing_.find(indexed->slot);
  return found == replacing_.end() ? nullptr : table_.At(found->second);
}

Shard::PutDecision Shard::DecidePut(const PutRequest& put, ReadableSegments readable,
                                    Instant now) const {
  PutDecision decision{.from_put = !put.upsert};
  ObjectRecord* indexed = table_.Find(put.key.hash, put.key.tenant, put.key.key);
  if (indexed == nullptr) {
    return decision;
  }
  decision.present = indexed->slot;
  ObjectRecord* open = OpenWrite(indexed);
  if (open != nullptr && open->client == put.client && put.call_id != 0 &&
      open->call_id == put.call_id && open->size_bytes == put.size_bytes) {
    decision.repeated = open;
    return decision;
  }
  if (indexed->committed != 0) {
    if (!put.upsert && AnyReplicaReadable(*indexed, readable)) {
      decision.code = StoreCode::kObjectAlreadyExists;
      return decision;
    }
    if (const GroupNumber group = GroupOf(*indexed); group != kNoGroup) {
      decision.group = context_.groups.NameOf(group);
    }
    if (!put.group.empty() && put.group != decision.group) {
      decision.code = StoreCode::kInvalidParams;
      return decision;
    }
    decision.from_put = false;
  }
  if (open != nullptr) {
    if (!put.upsert && now - StartOf(*open) < context_.options.put_discard) {
      decision.code = StoreCode::kObjectAlreadyExists;
      return decision;
    }
    decision.drop = DropEvent(*open, RemoveReason::kReplaced, now);
  }
  return decision;
}

Shard::Decision Shard::DecideEnd(const KeyRef& key, const Uuid& client, const PutEnding& ending,
                                 Instant now) const {
  ObjectRecord* indexed = table_.Find(key.hash, key.tenant, key.key);
  if (indexed == nullptr) {
    return {.code = StoreCode::kObjectNotFound};
  }
  const auto means = [&](const ObjectRecord& object) {
    return ending.version == 0 || ending.version == object.version;
  };
  const ObjectRecord* open = OpenWrite(indexed);
  const ObjectRecord& latest = open != nullptr ? *open : *indexed;
  if (open == nullptr || !means(*open)) {
    if (indexed->committed != 0 && ending.version == indexed->version &&
        indexed->client == client && ending.success) {
      return {};  // Ended before; the answer was lost.
    }
    if (latest.client != client) {
      return {.code = StoreCode::kIllegalClient};
    }
    const bool again = open == nullptr && means(latest) && ending.success;
    return {.code = again ? StoreCode::kOk : StoreCode::kInvalidWrite};
  }
  if (open->client != client) {
    return {.code = StoreCode::kIllegalClient};
  }
  if (!ending.success) {
    return {.event = DropEvent(*open, RemoveReason::kRevoked, now)};
  }
  ObjectEvent event{.kind = ObjectEventKind::kCommitted,
                    .slot = open->slot,
                    .now = now,
                    .hash = key.hash,
                    .tenant = key.tenant,
                    .key = open->key(),
                    .version = open->version,
                    .size_bytes = open->size_bytes,
                    .client = open->client,
                    .data_type = open->data_type,
                    .from_put = open->from_put != 0,
                    .hard_pinned = open->hard_pinned != 0};
  if (open != indexed) {
    event.until = ReadUntil(*indexed);
  }
  if (ending.has_checksum) {
    event.checksum = ending.checksum;
  }
  return {.event = event};
}

ObjectEvent Shard::DropEvent(const ObjectRecord& open, RemoveReason reason, Instant now) const {
  // A writer that does not know yet may go on writing.
  const Instant until = reason == RemoveReason::kRevoked
                            ? now + context_.options.revoked_rest
                            : StartOf(open) + context_.options.put_release;
  return {.kind = ObjectEventKind::kPutDropped,
          .reason = reason,
          .slot = open.slot,
          .now = now,
          .until = until};
}

// ---- Removing ----

ObjectEvent Shard::RemoveEvent(const ObjectRecord& object, RemoveReason reason, Instant now) const {
  return {.kind = ObjectEventKind::kRemoved,
          .reason = reason,
          .slot = object.slot,
          .now = now,
          .until = ReadUntil(object)};
}

Shard::Decision Shard::DecideRemove(const ObjectRecord& object, bool force, Instant now) const {
  if (object.committed == 0 || replacing_.contains(object.slot)) {
    return {.code = StoreCode::kReplicaIsNotReady};
  }
  if (!force && object.lease_until_ns > now.time_since_epoch().count()) {
    return {.code = StoreCode::kObjectHasLease};
  }
  return {.event = RemoveEvent(object, RemoveReason::kAsked, now)};
}

Shard::Decision Shard::DecideRemove(const KeyRef& key, bool force, Instant now) const {
  const ObjectRecord* object = table_.Find(key.hash, key.tenant, key.key);
  if (object == nullptr) {
    return {.code = StoreCode::kObjectNotFound};
  }
  return DecideRemove(*object, force, now);
}

std::optional<ObjectEvent> Shard::DecideEvict(Slot slot, Instant now) const {
  const ObjectRecord* object = table_.At(slot);
  if (object == nullptr || object->hard_pinned != 0 || !DecideRemove(*object, false, now).event) {
    return std::nullopt;
  }
  return RemoveEvent(*object, RemoveReason::kEvicted, now);
}

std::optional<ObjectEvent> Shard::DecideLost(SegmentNumber segment, Instant now) const {
  const Slot slot = table_.FirstOn(segment);
  if (slot == kNoSlot) {
    return std::nullopt;
  }
  const ObjectRecord& object = *table_.At(slot);
  return ObjectEvent{.kind = ObjectEventKind::kReplicasLost,
                     .slot = slot,
                     .now = now,
                     .until = object.committed != 0
                                  ? ReadUntil(object)
                                  : StartOf(object) + context_.options.put_release,
                     .segment = segment};
}

std::optional<ObjectEvent> Shard::DecideClear(
    const KeyRef& key, const Uuid& client, std::optional<std::span<const SegmentNumber>> segments,
    Instant now) const {
  const ObjectRecord* object = table_.Find(key.hash, key.tenant, key.key);
  if (object == nullptr || object->client != client || !DecideRemove(*object, false, now).event) {
    return std::nullopt;
  }
  if (!segments) {
    return RemoveEvent(*object, RemoveReason::kAsked, now);
  }
  for (const ExtentRecord& extent : object->extents()) {
    if (std::ranges::find(*segments, SegmentNumber{extent.segment}) != segments->end()) {
      return ObjectEvent{.kind = ObjectEventKind::kReplicasLost,
                         .slot = object->slot,
                         .now = now,
                         .until = ReadUntil(*object),
                         .segment = extent.segment};
    }
  }
  return std::nullopt;
}

std::optional<ObjectEvent> Shard::DecideTimeout(Instant now) const {
  if (!soft_pins_.empty() && soft_pins_.begin()->first <= now) {
    return ObjectEvent{
        .kind = ObjectEventKind::kPinEnded, .slot = soft_pins_.begin()->second, .now = now};
  }
  if (!in_flight_.empty()) {
    const ObjectRecord& oldest = *table_.At(in_flight_.front().slot);
    if (now - StartOf(oldest) >= context_.options.put_release) {
      return DropEvent(oldest, RemoveReason::kTimedOut, now);
    }
  }
  return std::nullopt;
}

}  // namespace mooncake::store
