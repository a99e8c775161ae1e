// The changing half of Shard.
#include <fmt/format.h>

#include <algorithm>

#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/master/key_hash.h"
#include "mooncake-store/src/master/shard.h"

namespace mooncake::store {

std::uint64_t Shard::HashOf(const ObjectRecord& object) const {
  return HashKey(object.tenant, object.key());
}

void Shard::Apply(const ObjectEvent& event) {
  switch (event.kind) {
    case ObjectEventKind::kPutStarted:
      ApplyStarted(event);
      break;
    case ObjectEventKind::kCommitted:
      ApplyCommitted(event);
      break;
    case ObjectEventKind::kLeased:
      Lease(event.slot, event.use, event.until, event.now);
      return;
    case ObjectEventKind::kPutDropped:
    case ObjectEventKind::kRemoved:
      ApplyRemoved(event);
      break;
    case ObjectEventKind::kReplicasLost:
      ApplyLost(event);
      break;
    case ObjectEventKind::kPinEnded:
      EndSoftPin(*table_.At(event.slot));
      break;
  }
  if (context_.sink != nullptr) {
    context_.sink->OnObject(event);
  }
}

Shard::Rare& Shard::RareOf(ObjectRecord& object) {
  object.has_rare = 1;
  return rare_[object.slot];
}

void Shard::Count(const ObjectRecord& object, bool comes) {
  const std::uint64_t pinned = object.hard_pinned != 0 ? OccupiedBytes(object) : 0;
  // Adding the negative wraps around to subtracting.
  context_.counters.objects += comes ? std::uint64_t{1} : ~std::uint64_t{0};
  if (pinned != 0) {
    context_.counters.hard_pinned_bytes += comes ? pinned : ~pinned + 1;
  }
}

void Shard::CountInFlight(const ObjectRecord& object, bool comes) {
  std::uint64_t bytes = 0;
  for (const ExtentRecord& extent : object.extents()) {
    const std::uint64_t part = std::uint64_t{extent.units} * kSpaceUnitBytes;
    bytes += part;
    context_.segments.At(extent.segment)->in_flight_bytes += comes ? part : ~part + 1;
  }
  context_.counters.in_flight_bytes += comes ? bytes : ~bytes + 1;
}

void Shard::ApplyStarted(const ObjectEvent& event) {
  ObjectRecord* indexed = table_.Find(event.hash, event.tenant, event.key);
  ObjectRecord& object = table_.Insert(event.slot, event.tenant, event.key, event.extents);
  object.call_id = event.call_id;
  object.version = event.version;
  object.size_bytes = event.size_bytes;
  object.client = event.client;
  object.data_type = event.data_type;
  object.hard_pinned = event.hard_pinned ? 1 : 0;
  object.from_put = event.from_put ? 1 : 0;
  if (indexed == nullptr) {
    table_.AddToIndex(object, event.hash);
  } else {
    MC_CHECK(indexed->committed != 0 && !replacing_.contains(indexed->slot));
    replacing_[indexed->slot] = object.slot;
    replaces_[object.slot] = indexed->slot;
  }
  if (!event.group.empty()) {
    RareOf(object).group = context_.groups.Join(event.tenant, event.group, object.slot);
  }
  if (event.soft_pin_action != SoftPinAction::kPreserve) {
    Rare& rare = RareOf(object);
    rare.action = event.soft_pin_action;
    rare.ttl = event.soft_pin_ttl;
  }
  context_.counters.metadata_bytes += object.block_bytes() + kOverheadBytes;
  ++open_;
  in_flight_.push_back({object.slot, object.version});
  CountInFlight(object, true);
}

bool Shard::IsOpen(const InFlight& write) const {
  const ObjectRecord* object = table_.At(write.slot);
  return object != nullptr && object->committed == 0 && object->version == write.version;
}

void Shard::TrimInFlight() {
  --open_;
  while (!in_flight_.empty() && !IsOpen(in_flight_.front())) {
    in_flight_.pop_front();
  }
  if (in_flight_.size() > 2 * open_ + 16) {
    std::erase_if(in_flight_,
                  [this](const InFlight& write) MC_REQUIRES(mutex_) { return !IsOpen(write); });
  }
}

void Shard::ApplyCommitted(const ObjectEvent& event) {
  ObjectRecord& object = *table_.At(event.slot);
  SoftPinAction action = SoftPinAction::kDisable;
  Instant pinned_until;
  if (object.has_rare != 0) {
    const Rare& rare = rare_.at(object.slot);
    action = rare.action;
    pinned_until = event.now + rare.ttl;
  }
  if (const auto replaces = replaces_.find(object.slot); replaces != replaces_.end()) {
    ObjectRecord& old = *table_.At(replaces->second);
    object.hard_pinned |= old.hard_pinned;
    const bool preserve =
        object.has_rare == 0 || rare_.at(object.slot).action == SoftPinAction::kPreserve;
    if (preserve && old.soft_pinned != 0) {
      action = SoftPinAction::kEnable;
      pinned_until = rare_.at(old.slot).soft_pinned_until;
    }
    replacing_.erase(old.slot);
    replaces_.erase(replaces);
    Discard(old, event.hash, event.until, event.now);
    table_.AddToIndex(object, event.hash);
  }
  CountInFlight(object, false);
  object.committed = 1;
  object.lease_until_ns = event.now.time_since_epoch().count();
  Count(object, true);
  TrimInFlight();
  if (event.checksum) {
    RareOf(object).checksum = event.checksum;
  }
  if (action == SoftPinAction::kEnable && pinned_until > event.now) {
    object.soft_pinned = 1;
    RareOf(object).soft_pinned_until = pinned_until;
    soft_pins_.emplace(pinned_until, object.slot);
    ++context_.counters.soft_pinned_objects;
  }
  if (object.hard_pinned != 0 || object.soft_pinned != 0) {
    pinned_.push_back(
        {{event.hash, object.slot}, object.hard_pinned != 0 ? PinClass::kHard : PinClass::kSoft});
  }
}

void Shard::EndSoftPin(ObjectRecord& object) {
  MC_CHECK(object.soft_pinned != 0);
  soft_pins_.erase({rare_.at(object.slot).soft_pinned_until, object.slot});
  object.soft_pinned = 0;
  --context_.counters.soft_pinned_objects;
  if (object.hard_pinned == 0) {
    pinned_.push_back({{HashOf(object), object.slot}, PinClass::kNone});
  }
}

void Shard::ApplyRemoved(const ObjectEvent& event) {
  ObjectRecord& object = *table_.At(event.slot);
  if (event.reason == RemoveReason::kEvicted) {
    ++context_.counters.evicted_objects;
    context_.counters.evicted_bytes += OccupiedBytes(object);
  } else if (event.kind == ObjectEventKind::kPutDropped) {
    if (event.reason == RemoveReason::kReplaced) {
      ++context_.counters.puts_discarded;
    } else if (event.reason == RemoveReason::kTimedOut) {
      ++context_.counters.puts_released;
    }
  }
  Discard(object, HashOf(object), event.until, event.now);
}

void Shard::Discard(ObjectRecord& object, std::uint64_t hash, Instant until, Instant now) {
  const Slot slot = object.slot;
  const bool was_open = object.committed == 0;
  if (was_open) {
    CountInFlight(object, false);
    if (const auto found = replaces_.find(slot); found != replaces_.end()) {
      replacing_.erase(found->second);
      replaces_.erase(found);
    }
  } else {
    Count(object, false);
  }
  if (object.indexed != 0) {
    table_.RemoveFromIndex(object, hash);
  }
  if (const auto found = replacing_.find(slot); found != replacing_.end()) {
    // What was to replace it is now the only version.
    table_.AddToIndex(*table_.At(found->second), hash);
    replaces_.erase(found->second);
    replacing_.erase(found);
  }
  if (object.has_rare != 0) {
    const Rare& rare = rare_.at(slot);
    if (rare.group != kNoGroup) {
      context_.groups.Leave(rare.group, slot);
    }
    if (object.soft_pinned != 0) {
      soft_pins_.erase({rare.soft_pinned_until, slot});
      --context_.counters.soft_pinned_objects;
    }
    rare_.erase(slot);
  }
  released_.clear();
  AppendExtents(object, released_, [](std::uint32_t) { return true; });
  context_.segments.Release(released_, until, now);
  context_.counters.metadata_bytes -= object.block_bytes() + kOverheadBytes;
  table_.Erase(object);
  if (was_open) {
    TrimInFlight();
  }
  gone_.push_back({hash, slot});
}

void Shard::ApplyLost(const ObjectEvent& event) {
  ObjectRecord& object = *table_.At(event.slot);
  const auto lost = [&](const ObjectRecord& of, std::uint32_t replica) {
    return std::ranges::any_of(of.extents(), [&](const ExtentRecord& extent) {
      return extent.replica == replica && extent.segment == event.segment;
    });
  };
  bool any_left = false;
  for (std::uint32_t replica = 0; replica < object.replica_count; ++replica) {
    any_left = any_left || !lost(object, replica);
  }
  const std::uint64_t hash = HashOf(object);
  if (!any_left) {
    Discard(object, hash, event.until, event.now);
    return;
  }
  object.committed != 0 ? Count(object, false) : CountInFlight(object, false);
  released_.clear();
  AppendExtents(object, released_, [&](std::uint32_t replica) { return lost(object, replica); });
  context_.segments.Release(released_, event.until, event.now);
  context_.counters.metadata_bytes -= object.block_bytes();
  const ObjectRecord& left = table_.DropReplicasOn(object, event.segment);
  context_.counters.metadata_bytes += left.block_bytes();
  left.committed != 0 ? Count(left, true) : CountInFlight(left, true);
  // To the policy it is another object now: it lies elsewhere.
  const ChainKey key{hash, left.slot};
  std::vector<Placement> placements;
  const EvictionHub::Put put{.key = key,
                             .pin = left.hard_pinned != 0   ? PinClass::kHard
                                    : left.soft_pinned != 0 ? PinClass::kSoft
                                                            : PinClass::kNone,
                             .placement_count = AppendPlacements(left, placements)};
  context_.hub.OnGone(std::span(&key, 1));
  context_.hub.OnPuts(std::span(&put, 1), placements);
  if (left.committed != 0) {
    context_.hub.OnReady(std::span(&key, 1));
    context_.hub.OnLease(key, Instant(Duration(left.lease_until_ns)));
  }
}

void Shard::Flush() {
  if (!pinned_.empty()) {
    for (const auto& [key, pin] : pinned_) {
      context_.hub.OnPin(key, pin);
    }
    pinned_.clear();
  }
  if (!gone_.empty()) {
    context_.hub.OnGone(gone_);
    gone_.clear();
  }
}

std::string Shard::Dump() const {
  std::string text;
  std::vector<const ObjectRecord*> objects;
  table_.ForEachFrom(0, ~std::size_t{0},
                     [&](const ObjectRecord& object) { objects.push_back(&object); });
  for (const ObjectRecord* each : objects) {
    const ObjectRecord& object = *each;
    text += fmt::format("{} '{}' tenant {} version {} size {} by {} type {}", object.slot,
                        object.key(), object.tenant, object.version, object.size_bytes,
                        object.client.ToString(), object.data_type);
    text += fmt::format(" {}{}{}{}{} ", object.committed != 0 ? 'c' : '-',
                        object.indexed != 0 ? 'i' : '-', object.hard_pinned != 0 ? 'h' : '-',
                        object.soft_pinned != 0 ? 's' : '-', object.from_put != 0 ? 'p' : '-');
    text += object.committed != 0 ? fmt::format("lease {} {}", object.lease_until_ns,
                                                object.lent_whole != 0 ? 'w' : 'r')
                                  : fmt::format("call {}", object.call_id);
    if (object.has_rare != 0) {
      const Rare& rare = rare_.at(object.slot);
      text +=
          fmt::format(" group '{}' checksum {} pin {}/{}/{}", context_.groups.NameOf(rare.group),
                      rare.checksum.value_or(0), static_cast<int>(rare.action), rare.ttl.count(),
                      rare.soft_pinned_until.time_since_epoch().count());
    }
    for (const ExtentRecord& extent : object.extents()) {
      text += fmt::format(" {}:{}@{}+{}", static_cast<int>(extent.replica),
                          static_cast<int>(extent.segment), extent.offset_bytes, extent.units);
    }
    text += '\n';
  }
  std::map<Slot, Slot> replacing(replacing_.begin(), replacing_.end());
  for (const auto& [old, open] : replacing) {
    text += fmt::format("{} will replace {}\n", open, old);
  }
  for (const InFlight& write : in_flight_) {
    if (IsOpen(write)) {
      text += fmt::format("open {} {}\n", write.slot, write.version);
    }
  }
  for (const auto& [until, slot] : soft_pins_) {
    text += fmt::format("pinned {} until {}\n", slot, until.time_since_epoch().count());
  }
  return text;
}

}  // namespace mooncake::store
