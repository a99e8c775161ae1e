// What an operator may set of the master's behaviour, and the counters that tell what it did.
//
// Thread-safety: options are read-only once the master runs; counters are atomics.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "mooncake-common/src/base/clock.h"

namespace mooncake::store {

enum class AllocationStrategy : std::uint8_t { kRandom, kFreeRatioFirst, kLocalFirst };
// The hit-density index, which learns what returns (eviction/hdi); least recently used.
enum class EvictionPolicyKind : std::uint8_t { kHdi, kLru };

// Defaults are those of the published master's flags.
struct MasterOptions {
  Duration lease_ttl = std::chrono::seconds(10);
  // How long a reader may use a location before it asks again; lease_ttl if that is less. It is
  // short because memory of what is removed by force rests so long.
  Duration read_ttl = std::chrono::seconds(1);
  Duration soft_pin_ttl = std::chrono::minutes(30);    // Where the writer names none.
  Duration max_soft_pin_ttl = std::chrono::hours(24);  // More is an error.
  bool allow_evict_soft_pinned = true;                 // When nothing else may go.
  double eviction_ratio = 0.05;                        // Of all space: the most that one eviction
                                                       // frees ahead for the rest of its batch.
  Duration client_ttl = std::chrono::seconds(10);      // Silence after which a client is dropped.
  Duration put_discard = std::chrono::seconds(30);     // An open write this old may be replaced;
  Duration put_release = std::chrono::minutes(10);     // this old, its space is used again.
  Duration revoked_rest = std::chrono::seconds(1);     // Bytes of a failed write may still arrive.
  AllocationStrategy allocation_strategy = AllocationStrategy::kRandom;
  std::uint64_t metadata_limit_bytes = 0;  // Of memory for objects; 0 = none.
  // A power of two. Few, so that a batch has many keys in each, whose cache misses then overlap.
  std::uint32_t shard_count = 16;
  std::uint64_t seed = 1;           // Of placement and of segment incarnations.
  std::uint64_t view_version = 1;   // Names this master's life to clients.
  std::uint64_t first_version = 1;  // Of objects. A later life must begin above an earlier one's
                                    // last: give it the nanoseconds of the real time.

  [[nodiscard]] Duration ReadTtl() const { return std::min(read_ttl, lease_ttl); }
};

struct MasterCounters {
  // Gauges.
  std::atomic<std::uint64_t> objects{0};  // Whose bytes are there.
  std::atomic<std::uint64_t> soft_pinned_objects{0};
  std::atomic<std::uint64_t> hard_pinned_bytes{0};
  std::atomic<std::uint64_t> in_flight_bytes{0};  // Given to writes that have not ended.
  std::atomic<std::uint64_t> metadata_bytes{0};   // An estimate of the memory that objects take.
  std::atomic<std::uint64_t> resting_bytes{0};    // Of nobody, but not yet free again.
  // Counters.
  std::atomic<std::uint64_t> evictions_attempted{0};
  std::atomic<std::uint64_t> evictions_for_metadata{0};  // Of those, at metadata_limit_bytes.
  std::atomic<std::uint64_t> evictions_successful{0};
  std::atomic<std::uint64_t> evicted_objects{0};
  std::atomic<std::uint64_t> evicted_bytes{0};
  std::atomic<std::uint64_t> puts_discarded{0};  // Open writes replaced by another.
  std::atomic<std::uint64_t> puts_released{0};   // Open writes given up.
  std::atomic<std::uint64_t> put_alloc_failures{0};
  std::atomic<std::uint64_t> put_partial_allocations{0};  // Fewer replicas than asked for.
  std::atomic<std::uint64_t> gets{0};                     // Keys asked for with a get,
  std::atomic<std::uint64_t> get_hits{0};                 // and found; cached ones counted in both.
  std::atomic<std::uint64_t> hit_bytes{0};
  std::atomic<std::uint64_t> clients_expired{0};
  std::atomic<std::uint64_t> failed_read_reports{0};
};

}  // namespace mooncake::store
