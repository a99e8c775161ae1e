#include "mooncake-store/src/master/eviction/policy_replay.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "mooncake-common/src/base/mix.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

namespace {

constexpr std::uint32_t kBlockUnits = 1;
constexpr std::uint64_t kBlockBytes = 64;

// Block numbers of a trace are small; keys' hashes are not.
std::uint64_t HashBlock(std::uint64_t block) { return Mix64(block + kMixStep); }

}  // namespace

class PolicyReplay::Guard final : public SlotGuard {
 public:
  Guard(std::vector<Object>& objects, std::int64_t now_ns) : objects_(objects), now_ns_(now_ns) {}
  bool MayGo(Slot slot) override { return objects_[slot].bound_until_ns <= now_ns_; }
  std::int64_t now_ns() const override { return now_ns_; }
  std::int64_t BoundUntilNs(Slot slot) override { return objects_[slot].bound_until_ns; }

 private:
  std::vector<Object>& objects_;
  const std::int64_t now_ns_;
};

PolicyReplay::PolicyReplay(std::unique_ptr<EvictionPolicy> policy, const Options& options)
    : policy_(std::move(policy)), options_(options) {}

bool PolicyReplay::MakeRoom(std::size_t blocks, Slot keep, std::int64_t now_ns) {
  SegmentMask mask;
  for (SegmentNumber segment = 0; segment < options_.segments; ++segment) {
    mask.Add(segment);
  }
  Guard guard(objects_, now_ns);
  victims_.clear();
  policy_->Pick({.segments = &mask, .bytes = blocks * kBlockBytes, .keep = keep}, guard, victims_);
  for (const Slot slot : victims_) {
    Object& object = objects_[slot];
    MC_CHECK(object.bound_until_ns <= now_ns && (slot != keep || victims_.size() == 1));
    counts_.left_behind += static_cast<std::uint64_t>(object.children > 0);
    fingerprint_ = HashBlock(fingerprint_ ^ object.block);
    if (object.parent != kNoSlot) {
      --objects_[object.parent].children;
    }
    MC_CHECK(slot_of_.erase(object.block) == 1);
    free_.push_back(slot);
    policy_->OnGone(slot);
  }
  return !victims_.empty();
}

void PolicyReplay::Read(std::uint64_t block, std::int64_t now_ns) {
  const auto found = slot_of_.find(block);
  const ChainKey key{.hash = HashBlock(block),
                     .slot = found == slot_of_.end() ? kNoSlot : found->second};
  if (key.slot != kNoSlot) {
    objects_[key.slot].bound_until_ns = now_ns + options_.lease_ns;
  }
  policy_->OnChain({.chain_id = ++chain_id_, .total = 1, .keys = std::span(&key, 1)});
}

void PolicyReplay::Serve(std::span<const std::uint64_t> chain, std::int64_t now_ns) {
  if (chain.empty()) {
    return;
  }
  keys_.clear();
  std::size_t hits = 0;
  for (const std::uint64_t block : chain) {
    const auto found = slot_of_.find(block);
    ChainKey key{.hash = HashBlock(block)};
    if (found != slot_of_.end()) {
      key.slot = found->second;
      objects_[key.slot].bound_until_ns = now_ns + options_.lease_ns;
      ++counts_.present;
      hits += static_cast<std::size_t>(hits == keys_.size());
    }
    keys_.push_back(key);
  }
  counts_.asked += chain.size();
  counts_.prefix_hits += hits;
  policy_->OnChain(
      {.chain_id = ++chain_id_, .total = static_cast<std::uint32_t>(keys_.size()), .keys = keys_});

  const auto missing = static_cast<std::size_t>(
      std::ranges::count(keys_ | std::views::drop(hits), kNoSlot, &ChainKey::slot));
  std::size_t left = missing;
  started_.clear();
  for (std::size_t index = hits; index < keys_.size(); ++index) {
    // Evicted by now, or put by this very chain: keys may repeat.
    const auto found = slot_of_.find(chain[index]);
    keys_[index].slot = found == slot_of_.end() ? kNoSlot : found->second;
    if (keys_[index].slot != kNoSlot) {
      continue;
    }
    Slot parent = index == 0 ? kNoSlot : keys_[index - 1].slot;
    ++counts_.puts;
    if (used() >= options_.capacity) {
      const auto ahead = static_cast<std::size_t>(options_.ahead * options_.capacity);
      if (!MakeRoom(1 + std::min(ahead, left > 0 ? left - 1 : 0), parent, now_ns)) {
        counts_.refused += chain.size() - index;
        break;
      }
      parent = index > 0 && slot_of_.contains(chain[index - 1]) ? parent : kNoSlot;
    }
    left -= static_cast<std::size_t>(left > 0);
    Slot slot = static_cast<Slot>(objects_.size());
    if (free_.empty()) {
      objects_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    objects_[slot] = {.block = chain[index],
                      .bound_until_ns = std::numeric_limits<std::int64_t>::max(),
                      .parent = parent};
    if (parent != kNoSlot) {
      ++objects_[parent].children;
    }
    slot_of_[chain[index]] = slot;
    keys_[index].slot = slot;
    const Placement placement{.segment = static_cast<SegmentNumber>(slot % options_.segments),
                              .units = kBlockUnits};
    policy_->OnPut({.slot = slot,
                    .parent = parent,
                    .hash = keys_[index].hash,
                    .placements = std::span(&placement, 1)});
    started_.push_back(slot);
  }
  for (const Slot slot : started_ | std::views::reverse) {
    objects_[slot].bound_until_ns = 0;
    policy_->OnReady(slot);
  }
}

}  // namespace mooncake::store
