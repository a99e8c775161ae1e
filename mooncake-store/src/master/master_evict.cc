// Making room in a full store: who goes, and with whom.
#include <algorithm>
#include <chrono>

#include "mooncake-store/src/master/master_scratch.h"

namespace mooncake::store {

bool Master::MakeRoom(const SegmentMask& where, std::uint64_t bytes, Slot keep, Instant now,
                      std::optional<Instant>& earliest) {
  if (next_pin_end_ns_.load(std::memory_order_relaxed) <= now.time_since_epoch().count()) {
    EndPins(now);
  }
  ++counters_.evictions_attempted;
  std::vector<Slot> victims;
  for (const bool soft_pinned_too : {false, true}) {
    if (soft_pinned_too && !options_.allow_evict_soft_pinned) {
      break;
    }
    const PickRequest request{
        .segments = &where, .bytes = bytes, .soft_pinned_too = soft_pinned_too, .keep = keep};
    for (Freed freed; !freed.any;) {
      victims.clear();
      const auto wait = hub_.Pick(request, now, victims);
      if (wait && (!earliest || *wait < *earliest)) {
        earliest = wait;
      }
      if (victims.empty()) {
        break;
      }
      for (const Slot slot : victims) {
        if (freed.bytes < bytes) {
          Evict(request, slot, now, freed);
        }
      }
      if (freed.any) {
        ++counters_.evictions_successful;
        return true;
      }
      // All were bound without the policy knowing, which now it does: it names others.
    }
  }
  if (const Instant rested = segments_.NextRested(); !earliest || rested < *earliest) {
    earliest = rested;
  }
  return false;
}

void Master::Evict(const PickRequest& request, Slot slot, Instant now, Freed& freed) {
  const auto drop = [&](Shard& shard, const ObjectEvent& event) MC_NO_THREAD_SAFETY_ANALYSIS {
    for (const ExtentRecord& extent : shard.At(event.slot)->extents()) {
      freed.bytes +=
          request.segments->Has(extent.segment) ? std::uint64_t{extent.units} * kSpaceUnitBytes : 0;
    }
    freed.any = true;
    shard.Apply(event);
    shard.Flush();
  };
  // Not to be named again at once: leased since the policy heard of it, or being replaced, or bound
  // by its group.
  const auto refuse = [&](const ObjectRecord& object, std::int64_t until_ns) {
    hub_.OnLease({HashKey(object.tenant, object.key()), object.slot},
                 std::max(Instant(Duration(until_ns)), now + std::chrono::milliseconds(100)));
  };
  GroupNumber group = kNoGroup;
  {
    Shard& shard = ShardOfSlot(slot);
    const MutexLock lock(shard.mutex());
    const ObjectRecord* object = shard.At(slot);
    if (object == nullptr) {
      return;
    }
    const auto event = shard.DecideEvict(slot, now);
    if (!event) {
      refuse(*object, object->LeaseUntilNs());
      return;
    }
    group = shard.GroupOf(*object);
    if (group == kNoGroup) {
      drop(shard, *event);
      return;
    }
  }
  const std::vector<Slot> members = groups_.Members(group);
  // Calls visit(shard, object) for each member that no pin keeps, with its shard locked.
  const auto for_each = [&](auto visit) {
    for (const Slot member : members) {
      Shard& shard = ShardOfSlot(member);
      const MutexLock lock(shard.mutex());
      const ObjectRecord* object = shard.At(member);
      if (object != nullptr && shard.GroupOf(*object) == group && object->hard_pinned == 0 &&
          (object->soft_pinned == 0 || request.soft_pinned_too) &&
          (member != request.keep || slot == request.keep)) {
        visit(shard, *object);
      }
    }
  };
  bool bound = false;
  std::int64_t until_ns = 0;
  for_each([&](Shard& shard, const ObjectRecord& object) MC_NO_THREAD_SAFETY_ANALYSIS {
    if (!shard.DecideEvict(object.slot, now)) {
      bound = true;
      until_ns = std::max(until_ns, object.LeaseUntilNs());
    }
  });
  for_each([&](Shard& shard, const ObjectRecord& object) MC_NO_THREAD_SAFETY_ANALYSIS {
    if (bound) {
      refuse(object, until_ns);
    } else if (const auto event = shard.DecideEvict(object.slot, now)) {
      drop(shard, *event);  // What a lookup has leased in between stays.
    }
  });
}

FullHint Master::Fullness(Instant now, std::optional<Instant> earliest) const {
  FullHint hint{.pinned_bytes = counters_.hard_pinned_bytes,
                .in_flight_bytes = counters_.in_flight_bytes};
  const std::uint64_t used = MeasureUsage().used_bytes;
  const std::uint64_t others = hint.pinned_bytes + hint.in_flight_bytes;
  hint.leased_bytes = used > others ? used - others : 0;
  Instant next = std::min(earliest.value_or(Instant::max()), segments_.NextRested());
  if (next != Instant::max()) {
    const Duration wait = std::max(next - now, Duration(std::chrono::milliseconds(1)));
    hint.retry_after_ms =
        static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
  }
  return hint;
}

}  // namespace mooncake::store
