#include "mooncake-store/src/master/eviction/hdi/hdi.h"

#include <algorithm>
#include <cmath>

namespace mooncake::store {

namespace {

constexpr std::uint32_t kForgetEvery = 20;  // Ticks,
constexpr std::uint32_t kForgetEveryAtFirst = 5;
constexpr std::uint32_t kFirstTicks = 1000;  // in the first ones.
// Ghosts that the hand passes for each block asked for.
constexpr std::size_t kExposedPerBlock = 8;
// A block of its own is no chain. One in this many leaves a ghost, standing for all.
constexpr std::uint64_t kSingleSample = 8;
constexpr std::size_t kAhead = 8;  // Prefetched.

// Whether a block leaves a ghost; the blocks that it stands for, else 0.
std::uint8_t GhostWeight(std::uint64_t hash, std::uint32_t position, std::uint32_t total) {
  if (total == 1) {
    return (hash >> 40U) % kSingleSample == 0 ? kSingleSample : 0;
  }
  if (position % 8 == 7) {
    return position + 1 == total ? 1 : 8;  // The last but one has left one, too.
  }
  return position + 2 == total ? static_cast<std::uint8_t>(position % 8 + 1) : 0;
}

}  // namespace

void HdiPolicy::ForgetWhenDue() {
  const std::uint32_t passed = tick_ - last_forgot_;
  if (passed < (tick_ < kFirstTicks ? kForgetEveryAtFirst : kForgetEvery)) {
    return;
  }
  last_forgot_ = tick_;
  fit_due_ = true;
  const double half_life =
      std::max(1500.0, 10.0 * static_cast<double>(forest_.size()) / kBlocksPerTick);
  hazards_.Forget(std::exp2(-static_cast<double>(passed) / half_life));
}

std::size_t HdiPolicy::FindKnown(const ChainEvent& event) {
  const std::size_t count = event.keys.size();
  seen_.assign(count, {});
  for (std::size_t index = 0; index < std::min(kAhead, count); ++index) {
    forest_.Prefetch(event.keys[index].slot);
  }
  std::size_t known = 0;
  for (std::size_t index = 0; index < count; ++index) {
    if (index + kAhead < count) {
      forest_.Prefetch(event.keys[index + kAhead].slot);
    }
    if (index + kAhead / 2 < count) {
      const ChainKey& soon = event.keys[index + kAhead / 2];
      if (const ChainForest::Node* node = forest_.Find(soon.slot);
          node == nullptr || node->ghost != 0) {
        ghosts_.Prefetch(soon.hash);
      }
    }
    Seen& seen = seen_[index];
    seen.node = forest_.Find(event.keys[index].slot);
    if (seen.node == nullptr || seen.node->ghost != 0) {
      seen.ghost = ghosts_.Find(event.keys[index].hash);
    }
    if (seen.node != nullptr) {
      seen.node->ghost = 0;  // ReplaceGhosts() drops it.
    }
    if (seen.node != nullptr || seen.ghost != Ghosts::kNone) {
      known = index + 1;
    }
  }
  return known;
}

std::uint32_t HdiPolicy::KnownOfCall(const ChainEvent& event, std::size_t known_here) {
  const auto end = event.position + static_cast<std::uint32_t>(event.keys.size());
  const std::uint32_t known =
      known_here == 0 ? 0 : event.position + static_cast<std::uint32_t>(known_here);
  if (event.position == 0 && end >= event.total) {
    return known;
  }
  const auto found = std::ranges::find_if(open_chains_, [&](const OpenChain& open) {
    return open.client == event.client && open.chain_id == event.chain_id &&
           open.next == event.position;
  });
  OpenChain open{.client = event.client, .chain_id = event.chain_id, .next = end, .known = known};
  if (found != open_chains_.end()) {
    open.known = std::max(open.known, found->known);
    open_chains_.erase(found);
  }
  if (end < event.total) {
    if (open_chains_.size() == kOpenChains) {
      open_chains_.erase(open_chains_.begin());
    }
    open_chains_.push_back(open);
  }
  return open.known;
}

void HdiPolicy::Classify(const ChainEvent& event, std::size_t known_here,
                         std::uint32_t known_of_call) {
  // From the tail: a block was asked for at least as often and as lately as those behind it.
  unsigned count = 0;
  std::uint32_t since = 0xffffffff;  // Ticks since the latest use.
  int gap_before = 0;
  int gap_now = 0;
  for (std::size_t index = seen_.size(); index-- > 0;) {
    Seen& seen = seen_[index];
    if (index >= known_here) {
      const std::uint32_t position = event.position + static_cast<std::uint32_t>(index);
      seen.reuse = {.count = 1,
                    .cls = FirstUseClass(known_of_call, event.total,
                                         event.total > 1 && position + 1 == event.total),
                    .gap = 0};
      continue;
    }
    const auto learn = [&](const Reuse& reuse, std::uint32_t last) {
      count = std::max<unsigned>(count, reuse.count);
      if (const std::uint32_t passed = tick_ - last; passed < since) {
        since = passed;
        gap_now = QuarterOctaves(since);
      }
      gap_before = int{reuse.gap};
    };
    if (seen.ghost != Ghosts::kNone) {
      const Ghosts::Ghost& ghost = ghosts_.At(seen.ghost);
      learn(ghost.reuse, ghost.last);
    }
    if (seen.node != nullptr) {
      learn(seen.node->reuse, seen.node->last);
    }
    const unsigned times = std::min(count + 1, 255U);
    const int gap = count >= 2 ? (gap_now + gap_before) / 2 : gap_now;
    seen.reuse = {.count = static_cast<std::uint8_t>(times),
                  .cls = ReuseClass(times, gap),
                  .gap = static_cast<std::int8_t>(gap)};
  }
}

void HdiPolicy::ReplaceGhosts(const ChainEvent& event) {
  for (const Seen& seen : seen_) {
    if (seen.ghost != Ghosts::kNone && ghosts_.At(seen.ghost).weight != 0) {
      ghosts_.Hit(seen.ghost, tick_);
    }
  }
  for (std::size_t index = 0; index < seen_.size(); ++index) {
    const std::uint64_t hash = event.keys[index].hash;
    const std::uint8_t weight =
        GhostWeight(hash, event.position + static_cast<std::uint32_t>(index), event.total);
    if (weight == 0) {
      continue;
    }
    // A key twice in one call leaves one ghost.
    const Seen& seen = seen_[index];
    if (seen.node != nullptr ? seen.node->ghost == 0 : ghosts_.Find(hash) == Ghosts::kNone) {
      ghosts_.Add(hash, tick_, seen.reuse, weight, ghost_limit());
      if (seen.node != nullptr) {
        seen.node->ghost = 1;
      }
    }
  }
  ghosts_.Expose(kExposedPerBlock * seen_.size(), tick_);
}

void HdiPolicy::Settle(const ChainEvent& event) {
  Slot previous = kNoSlot;
  Slot root = kNoSlot;  // Of the chain of `previous`, once it is known.
  for (std::size_t index = 0; index < seen_.size(); ++index) {
    const Seen& seen = seen_[index];
    if (seen.node == nullptr) {
      misses_.Note(event.keys[index].hash, seen.reuse);
      previous = kNoSlot;
      root = kNoSlot;
      continue;
    }
    const Slot slot = event.keys[index].slot;
    seen.node->reuse = seen.reuse;
    seen.node->last = tick_;
    if (previous != kNoSlot && !forest_.HasParent(*seen.node)) {
      forest_.Adopt(slot, previous, root);  // What lost the object before it has found it again.
    }
    if (seen.node->parent != previous) {
      root = kNoSlot;
    }
    previous = slot;
  }
}

void HdiPolicy::OnChain(const ChainEvent& event) {
  if (event.again || event.keys.empty()) {
    return;
  }
  tick_ = static_cast<std::uint32_t>(blocks_seen_ / kBlocksPerTick);
  blocks_seen_ += event.keys.size();
  ForgetWhenDue();
  const std::size_t known_here = FindKnown(event);
  Classify(event, known_here, KnownOfCall(event, known_here));
  ReplaceGhosts(event);
  Settle(event);
}

void HdiPolicy::OnPut(const PutEvent& event) {
  if (event.placements.empty() || event.slot == kNoSlot) {
    return;
  }
  const std::optional<Reuse> looked_up = misses_.Take(event.hash);
  if (!looked_up) {
    tick_ = static_cast<std::uint32_t>(++blocks_seen_ / kBlocksPerTick);
  }
  ChainForest::Node& node = forest_.Add(event);
  node.last = tick_;
  node.reuse = looked_up.value_or(Reuse{});
}

void HdiPolicy::OnReady(Slot slot) {
  if (forest_.Find(slot) != nullptr) {
    forest_.SetReady(slot);
  }
}

void HdiPolicy::OnPin(Slot slot, PinClass pin) {
  if (forest_.Find(slot) != nullptr) {
    forest_.SetPin(slot, pin);
  }
}

void HdiPolicy::OnGone(Slot slot) {
  if (forest_.Find(slot) == nullptr) {
    return;
  }
  forest_.Remove(slot);
  ghosts_.Trim(tick_, ghost_limit());
}

}  // namespace mooncake::store
