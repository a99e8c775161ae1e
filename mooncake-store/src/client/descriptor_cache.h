// Remembers where objects lie for as long as their lease lives, so that a hot key costs no RPC.
//
// Only locations of objects that were put and never upserted may be offered: then what somebody
// else does to the key can be missed for at most the lease. What this client itself writes is
// forgotten at once; a lookup that was under way meanwhile cannot bring it back, because Offer()
// needs the ticket that was taken before the question was sent.
//
// Thread-safety: any thread; a lookup takes one of kShards leaf locks and does not allocate.
// Bounds:        `capacity` entries, rounded up to whole sets; a full set gives up the entry whose
//                lease ends first. A capacity of zero keeps nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/client/location.h"

namespace mooncake::store {

class DescriptorCache {
 public:
  using Ticket = std::uint64_t;

  struct Hit {
    std::shared_ptr<const Location> location;  // Null = not cached, or its lease has ended.
    Instant lease_until{};
  };

  explicit DescriptorCache(std::uint32_t capacity);

  // A hit's lease lives at `now`. The ticket is for offering what is asked for after a miss.
  [[nodiscard]] Hit Find(std::string_view key, Instant now);
  [[nodiscard]] Ticket TicketFor(std::string_view key) const;

  // Keeps `location` until `lease_until`, unless the key was forgotten since `ticket` was taken. A
  // known key's lease is only ever extended for the same version.
  void Offer(std::string_view key, std::shared_ptr<const Location> location, Instant lease_until,
             Ticket ticket);

  // This client wrote or removed the key, or could not read it.
  void Forget(std::string_view key);
  // All of it: the master started anew, or many keys were removed.
  void Clear();

 private:
  static constexpr std::size_t kShards = 64;
  static constexpr std::size_t kWays = 8;

  struct Entry {
    std::uint64_t hash = 0;
    Instant lease_until{};
    std::string key;
    std::shared_ptr<const Location> location;  // Null = free.
  };
  struct alignas(64) Shard {
    mutable Mutex mutex;
    // Made with the first entry. Sets of kWays stand one after another.
    std::vector<Entry> entries MC_GUARDED_BY(mutex);
    // Grows with every Forget() and Clear() here: tickets are the value before.
    std::uint64_t forgotten MC_GUARDED_BY(mutex) = 0;
  };

  [[nodiscard]] static std::uint64_t Hash(std::string_view key);
  [[nodiscard]] Shard& ShardOf(std::uint64_t hash) { return shards_[hash % kShards]; }
  [[nodiscard]] const Shard& ShardOf(std::uint64_t hash) const { return shards_[hash % kShards]; }
  [[nodiscard]] std::size_t SetOf(std::uint64_t hash) const {
    return (hash / kShards) % sets_per_shard_ * kWays;
  }

  const std::size_t sets_per_shard_;
  std::array<Shard, kShards> shards_;
};

}  // namespace mooncake::store
