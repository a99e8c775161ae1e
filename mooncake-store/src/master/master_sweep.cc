// Work on all objects, step by step; and the check of everything.
#include <fmt/format.h>

#include <algorithm>

#include "mooncake-store/src/master/master_scratch.h"

namespace mooncake::store {

namespace {

// Positions of a shard that one step looks at, the shard being locked; fewer where each key is held
// against a pattern, which mostly takes less than a microsecond, but may take milliseconds.
constexpr std::size_t kStep = 256;
constexpr std::size_t kPatternStep = 16;

// Of the answer to a lookup by pattern; an RPC message has at most 64 MiB.
constexpr std::uint64_t kMaxReplyBytes = 48ULL << 20;

StoreCode CompileInto(std::string_view pattern, ObjectSweep& sweep) {
  auto compiled = KeyPattern::Compile(pattern);
  if (!compiled) {
    return StoreCode::kInvalidParams;
  }
  sweep.pattern = std::move(*compiled);
  return StoreCode::kOk;
}

}  // namespace

StoreCode Master::Begin(const RemoveByRegexRequest& request, ObjectSweep& sweep) {
  sweep = {.force = request.force};
  return CompileInto(request.pattern, sweep);
}

StoreCode Master::Begin(const RemoveAllRequest& request, ObjectSweep& sweep) {
  sweep = {.force = request.force};
  return StoreCode::kOk;
}

StoreCode Master::Begin(const GetReplicasByRegexRequest& request, ObjectSweep& sweep) {
  sweep = {};
  return CompileInto(request.pattern, sweep);
}

bool Master::NextMatches(ObjectSweep& sweep, std::vector<std::string>& keys) {
  keys.clear();
  Shard& shard = *shards_[sweep.shard];
  {
    const MutexLock lock(shard.mutex());
    sweep.position =
        shard.ForEachFrom(sweep.position, kPatternStep, [&](const ObjectRecord& object) {
          if (object.indexed != 0) {
            keys.emplace_back(object.key());
          }
        });
  }
  std::erase_if(keys, [&](const std::string& key) { return !sweep.pattern->Matches(key); });
  return sweep.position == 0 && ++sweep.shard == options_.shard_count;
}

bool Master::StepRemove(ObjectSweep& sweep, Instant now) {
  ScratchLease lease(*this);
  Scratch& scratch = *lease;
  Shard& shard = *shards_[sweep.shard];
  bool done = false;
  if (sweep.pattern) {
    done = NextMatches(sweep, scratch.names);
    const MutexLock lock(shard.mutex());
    for (const std::string& key : scratch.names) {
      const KeyRef ref{HashKey(kDefaultTenant, key), kDefaultTenant, key};
      if (const auto event = shard.DecideRemove(ref, sweep.force, now).event) {
        shard.Apply(*event);
        ++sweep.removed;
      }
    }
    shard.Flush();
  } else {
    scratch.slots.clear();
    const MutexLock lock(shard.mutex());
    sweep.position = shard.ForEachFrom(sweep.position, kStep, [&](const ObjectRecord& object) {
      if (object.indexed != 0) {
        scratch.slots.push_back(object.slot);
      }
    });
    for (const Slot slot : scratch.slots) {
      if (const auto event = shard.DecideRemove(*shard.At(slot), sweep.force, now).event) {
        shard.Apply(*event);
        ++sweep.removed;
      }
    }
    shard.Flush();
    done = sweep.position == 0 && ++sweep.shard == options_.shard_count;
  }
  hub_.DrainIfGrown();
  return done;
}

bool Master::StepGet(ObjectSweep& sweep, const Uuid& client, Instant now,
                     GetReplicasByRegexReply& reply) {
  ScratchLease lease(*this);
  Scratch& scratch = *lease;
  reply.code = StoreCode::kOk;
  reply.lease_ttl_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.lease_ttl).count());
  const ReadableSegments readable = Readable(client, now, scratch);
  const Instant until = now + options_.lease_ttl;
  Shard& shard = *shards_[sweep.shard];
  const bool done = NextMatches(sweep, scratch.names);
  {
    const MutexLock lock(shard.mutex());
    for (const std::string& key : scratch.names) {
      const KeyRef ref{HashKey(kDefaultTenant, key), kDefaultTenant, key};
      const Shard::Found found = shard.Lookup(ref, readable);
      if (found.code != StoreCode::kOk) {
        continue;
      }
      shard.Lease(found.object->slot, LeaseUse::kWhole, until, now);
      hub_.OnLease({ref.hash, found.object->slot}, until);
      const std::size_t extents_before = reply.table.extents.size();
      reply.keys.push_back(key);
      AppendLocation(*found.object, *scratch.view, readable, reply.objects.emplace_back(),
                     reply.table);
      sweep.reply_bytes +=
          key.size() + sizeof(ObjectLocation) +
          (reply.table.extents.size() - extents_before) * (sizeof(Replica) + sizeof(Extent));
    }
  }
  if (sweep.reply_bytes > kMaxReplyBytes) {
    reply = {.code = StoreCode::kBufferOverflow};
    return true;
  }
  hub_.DrainIfGrown();
  return done;
}

bool Master::StepList(ObjectSweep& sweep, std::vector<std::string>& keys) {
  Shard& shard = *shards_[sweep.shard];
  const MutexLock lock(shard.mutex());
  sweep.position = shard.ForEachFrom(sweep.position, kStep, [&](const ObjectRecord& object) {
    if (object.committed != 0 && object.indexed != 0) {
      keys.emplace_back(object.key());
    }
  });
  return sweep.position == 0 && ++sweep.shard == options_.shard_count;
}

std::string Master::CheckInvariants() {
  std::shared_ptr<const SegmentView> view;
  segments_.Refresh(view);
  std::vector<std::vector<SpaceRange>> ranges(view->by_number.size());
  std::uint64_t objects = 0;
  std::uint64_t in_flight = 0;
  std::size_t all = 0;
  std::vector<const ObjectRecord*> records;
  for (const auto& shard : shards_) {
    const MutexLock lock(shard->mutex());
    records.clear();
    shard->ForEachFrom(0, ~std::size_t{0},
                       [&](const ObjectRecord& object) { records.push_back(&object); });
    all += records.size();
    for (const ObjectRecord* object : records) {
      (object->committed != 0 ? objects : in_flight) +=
          object->committed != 0 ? 1 : OccupiedBytes(*object);
      for (const ExtentRecord& extent : object->extents()) {
        if (extent.segment >= ranges.size() || !view->by_number[extent.segment]) {
          return fmt::format("'{}' lies on segment {}, which is not mounted", object->key(),
                             static_cast<int>(extent.segment));
        }
        ranges[extent.segment].push_back({extent.offset_bytes, extent.units * kSpaceUnitBytes});
      }
    }
  }
  segments_.AppendResting(ranges);
  for (std::size_t number = 0; number < ranges.size(); ++number) {
    if (!view->by_number[number]) {
      continue;
    }
    const SpaceAllocator& space = view->by_number[number]->space;
    for (const SpaceRange& free : space.FreeRanges()) {
      ranges[number].push_back(free);
    }
    std::ranges::sort(ranges[number]);
    std::uint64_t end = 0;
    for (const SpaceRange& range : ranges[number]) {
      if (range.offset_bytes != end) {
        return fmt::format("segment {}: range at {} after {}", number, range.offset_bytes, end);
      }
      end += range.length_bytes;
    }
    if (end != space.capacity_bytes()) {
      return fmt::format("segment {} ends at {} of {}", number, end, space.capacity_bytes());
    }
  }
  if (objects != counters_.objects || in_flight != counters_.in_flight_bytes) {
    return fmt::format("{} objects counted as {}, {} bytes in flight counted as {}", objects,
                       counters_.objects.load(), in_flight, counters_.in_flight_bytes.load());
  }
  return hub_.CheckInvariants(all);
}

}  // namespace mooncake::store
