#include "mooncake-store/src/master/eviction/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ranges>

namespace mooncake::store {

namespace {

constexpr std::size_t kDrainAbove = 4096;
constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

std::uint64_t EndsKey(Slot slot, std::uint32_t tag) { return (std::uint64_t{slot} << 32U) | tag; }

}  // namespace

// Answers the policy from what the ring has told.
class EvictionHub::Guard final : public SlotGuard {
 public:
  Guard(SlotArray<SlotState>& slots, std::int64_t now_ns) : slots_(slots), now_ns_(now_ns) {}

  bool MayGo(Slot slot) override {
    const std::int64_t until = slots_.At(slot).protected_until_ns;
    if (until <= now_ns_) {
      return true;
    }
    earliest_ns = std::min(earliest_ns, until);
    return false;
  }

  std::int64_t now_ns() const override { return now_ns_; }
  std::int64_t BoundUntilNs(Slot slot) override { return slots_.At(slot).protected_until_ns; }

  std::int64_t earliest_ns = kForever;

 private:
  SlotArray<SlotState>& slots_;
  const std::int64_t now_ns_;
};

EvictionHub::EvictionHub(std::unique_ptr<EvictionPolicy> policy)
    : policy_(std::move(policy)), needs_parents_(policy_->NeedsParents()) {}

void EvictionHub::OnChain(const ChainEvent& event, Instant leased_until) {
  const MutexLock lock(ring_mutex_);
  ring_.records.push_back(
      {.count = static_cast<std::uint32_t>(event.keys.size()), .kind = Kind::kChain});
  ring_.chains.push_back({event, leased_until});
  ring_.chains.back().event.keys = {};
  ring_.keys.insert(ring_.keys.end(), event.keys.begin(), event.keys.end());
}

void EvictionHub::OnPuts(std::span<const Put> puts, std::span<const Placement> placements) {
  const MutexLock lock(ring_mutex_);
  for (const Put& put : puts) {
    ring_.records.push_back({.hash = put.key.hash,
                             .parent_hash = put.parent.hash,
                             .slot = put.key.slot,
                             .parent = put.parent.slot,
                             .count = put.placement_count,
                             .kind = Kind::kPut,
                             .pin = put.pin});
    const auto own = placements.subspan(put.first_placement, put.placement_count);
    ring_.placements.insert(ring_.placements.end(), own.begin(), own.end());
  }
}

void EvictionHub::OnReady(std::span<const ChainKey> keys) {
  const MutexLock lock(ring_mutex_);
  for (const ChainKey& key : keys | std::views::reverse) {
    ring_.records.push_back({.hash = key.hash, .slot = key.slot, .kind = Kind::kReady});
  }
}

void EvictionHub::OnPin(ChainKey key, PinClass pin) {
  const MutexLock lock(ring_mutex_);
  ring_.records.push_back({.hash = key.hash, .slot = key.slot, .kind = Kind::kPin, .pin = pin});
}

void EvictionHub::OnLease(ChainKey key, Instant leased_until) {
  const MutexLock lock(ring_mutex_);
  ring_.records.push_back({.hash = key.hash,
                           .until_ns = leased_until.time_since_epoch().count(),
                           .slot = key.slot,
                           .kind = Kind::kLease});
}

void EvictionHub::OnGone(std::span<const ChainKey> keys) {
  const MutexLock lock(ring_mutex_);
  for (const ChainKey& key : keys) {
    ring_.records.push_back({.hash = key.hash, .slot = key.slot, .kind = Kind::kGone});
  }
}

void EvictionHub::DrainIfGrown() {
  {
    const MutexLock lock(ring_mutex_);
    if (ring_.size() < kDrainAbove) {
      return;
    }
  }
  const MutexLock lock(policy_mutex_);
  Drain();
}

EvictionHub::SlotState* EvictionHub::StateOf(ChainKey key) {
  SlotState* state = key.slot == kNoSlot ? nullptr : slots_.Find(key.slot);
  return state == nullptr || state->tag != TagOf(key.hash) ? nullptr : state;
}

int EvictionHub::Ends(Slot slot, std::uint32_t tag) const {
  const auto found = ends_.find(EndsKey(slot, tag));
  return found == ends_.end() ? 0 : found->second;
}

void EvictionHub::AddEnds(Slot slot, std::uint32_t tag, int count) {
  const auto [found, fresh] = ends_.try_emplace(EndsKey(slot, tag));
  found->second += count;
  if (found->second == 0) {
    ends_.erase(found);
  }
}

void EvictionHub::Drain() {
  {
    const MutexLock lock(ring_mutex_);
    std::swap(draining_, ring_);
  }
  std::size_t next_chain = 0;
  std::size_t next_key = 0;
  std::size_t next_placement = 0;
  for (const Record& record : draining_.records) {
    if (record.kind == Kind::kChain) {
      PlayChain(draining_.chains[next_chain++],
                std::span(draining_.keys).subspan(next_key, record.count));
      next_key += record.count;
    } else if (record.kind == Kind::kPut) {
      PlayPut(record, std::span(draining_.placements).subspan(next_placement, record.count));
      next_placement += record.count;
    } else {
      PlayOther(record);
    }
  }
  draining_.records.clear();
  draining_.chains.clear();
  draining_.keys.clear();
  draining_.placements.clear();
  if (draining_.records.capacity() + draining_.keys.capacity() > kDrainAbove * 8) {
    draining_ = {};
  }
}

void EvictionHub::PlayChain(const ChainHeader& chain, std::span<ChainKey> keys) {
  constexpr std::size_t kAhead = 6;
  const std::int64_t until = chain.leased_until.time_since_epoch().count();
  for (std::size_t at = 0; at < keys.size(); ++at) {
    if (at + kAhead < keys.size() && keys[at + kAhead].slot != kNoSlot) {
      __builtin_prefetch(slots_.Find(keys[at + kAhead].slot));
    }
    if (SlotState* state = StateOf(keys[at])) {
      state->protected_until_ns = std::max(state->protected_until_ns, until);
    } else {
      keys[at].slot = kNoSlot;
    }
  }
  ChainEvent event = chain.event;
  event.keys = keys;
  policy_->OnChain(event);
}

void EvictionHub::PlayPut(const Record& put, std::span<const Placement> placements) {
  if (Ends(put.slot, TagOf(put.hash)) > 0) {
    AddEnds(put.slot, TagOf(put.hash), -1);
    return;
  }
  if (const SlotState* before = slots_.Find(put.slot); before != nullptr && before->tag != 0) {
    AddEnds(put.slot, before->tag, -1);
    policy_->OnGone(put.slot);
    slots_.Remove(put.slot);
  }
  const ChainKey parent{put.parent_hash, put.parent};
  slots_.Add(put.slot) = {.protected_until_ns = kForever, .tag = TagOf(put.hash)};
  policy_->OnPut({.slot = put.slot,
                  .parent = StateOf(parent) == nullptr ? kNoSlot : put.parent,
                  .hash = put.hash,
                  .pin = put.pin,
                  .placements = placements});
}

void EvictionHub::PlayOther(const Record& record) {
  SlotState* state = StateOf({record.hash, record.slot});
  if (record.kind == Kind::kGone) {
    const std::uint32_t tag = TagOf(record.hash);
    if (state == nullptr || Ends(record.slot, tag) < 0) {
      AddEnds(record.slot, tag, 1);
    } else {
      policy_->OnGone(record.slot);
      slots_.Remove(record.slot);
    }
    return;
  }
  if (state == nullptr) {
    return;
  }
  switch (record.kind) {
    case Kind::kReady:
      state->protected_until_ns = 0;
      policy_->OnReady(record.slot);
      break;
    case Kind::kPin:
      policy_->OnPin(record.slot, record.pin);
      break;
    case Kind::kLease:
      state->protected_until_ns = std::max(state->protected_until_ns, record.until_ns);
      break;
    default:
      break;
  }
}

std::optional<Instant> EvictionHub::Pick(const PickRequest& request, Instant now,
                                         std::vector<Slot>& out) {
  const MutexLock lock(policy_mutex_);
  Drain();
  Guard guard(slots_, now.time_since_epoch().count());
  policy_->Pick(request, guard, out);
  if (guard.earliest_ns == kForever) {
    return std::nullopt;
  }
  return Instant(Duration(guard.earliest_ns));
}

std::string EvictionHub::CheckInvariants(std::size_t objects) {
  const MutexLock lock(policy_mutex_);
  Drain();
  std::size_t known = 0;
  slots_.ForEach([&](Slot, const SlotState& state) { known += state.tag != 0 ? 1 : 0; });
  if (known != objects || !ends_.empty()) {
    return fmt::format("the eviction hub knows {} of {} objects, and {} whose end came out of turn",
                       known, objects, ends_.size());
  }
  return policy_->CheckInvariants();
}

}  // namespace mooncake::store
