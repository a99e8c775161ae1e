#include "mooncake-store/src/client/descriptor_cache.h"

#include <algorithm>
#include <functional>
#include <span>

namespace mooncake::store {

DescriptorCache::DescriptorCache(std::uint32_t capacity)
    : sets_per_shard_((capacity + kShards * kWays - 1) / (kShards * kWays)) {}

std::uint64_t DescriptorCache::Hash(std::string_view key) {
  return std::hash<std::string_view>{}(key);
}

DescriptorCache::Hit DescriptorCache::Find(std::string_view key, Instant now) {
  if (sets_per_shard_ == 0) {
    return {};
  }
  const std::uint64_t hash = Hash(key);
  Shard& shard = ShardOf(hash);
  const MutexLock lock(shard.mutex);
  if (shard.entries.empty()) {
    return {};
  }
  for (Entry& entry : std::span(shard.entries).subspan(SetOf(hash), kWays)) {
    if (entry.location != nullptr && entry.hash == hash && entry.key == key) {
      if (now >= entry.lease_until) {
        entry.location = nullptr;
        return {};
      }
      return {.location = entry.location, .lease_until = entry.lease_until};
    }
  }
  return {};
}

DescriptorCache::Ticket DescriptorCache::TicketFor(std::string_view key) const {
  const Shard& shard = ShardOf(Hash(key));
  const MutexLock lock(shard.mutex);
  return shard.forgotten;
}

void DescriptorCache::Offer(std::string_view key, std::shared_ptr<const Location> location,
                            Instant lease_until, Ticket ticket) {
  if (sets_per_shard_ == 0) {
    return;
  }
  const std::uint64_t hash = Hash(key);
  Shard& shard = ShardOf(hash);
  const MutexLock lock(shard.mutex);
  if (shard.forgotten != ticket) {
    return;
  }
  if (shard.entries.empty()) {
    shard.entries.resize(sets_per_shard_ * kWays);
  }
  const auto set = std::span(shard.entries).subspan(SetOf(hash), kWays);
  const auto same = std::ranges::find_if(set, [&](const Entry& entry) {
    return entry.location != nullptr && entry.hash == hash && entry.key == key;
  });
  if (same != set.end()) {
    // Two lookups may be answered in either order: versions only grow, and the later lease of one
    // version holds for both.
    if (location->version < same->location->version) {
      return;
    }
    if (same->location->version == location->version) {
      lease_until = std::max(lease_until, same->lease_until);
    }
    same->lease_until = lease_until;
    same->location = std::move(location);
    return;
  }
  Entry& victim = *std::ranges::min_element(set, {}, [](const Entry& entry) {
    return entry.location == nullptr ? Instant::min() : entry.lease_until;
  });
  victim.hash = hash;
  victim.lease_until = lease_until;
  victim.key.assign(key);
  victim.location = std::move(location);
}

void DescriptorCache::Forget(std::string_view key) {
  const std::uint64_t hash = Hash(key);
  Shard& shard = ShardOf(hash);
  const MutexLock lock(shard.mutex);
  ++shard.forgotten;
  if (shard.entries.empty()) {
    return;
  }
  for (Entry& entry : std::span(shard.entries).subspan(SetOf(hash), kWays)) {
    if (entry.location != nullptr && entry.hash == hash && entry.key == key) {
      entry.location = nullptr;
    }
  }
}

void DescriptorCache::Clear() {
  for (Shard& shard : shards_) {
    const MutexLock lock(shard.mutex);
    ++shard.forgotten;
    shard.entries.clear();
  }
}

}  // namespace mooncake::store
