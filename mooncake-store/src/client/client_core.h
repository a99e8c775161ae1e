// What all operations of one client share: its options, what it knows of segments and objects, and
// what it has mounted. Together with the operations it is the whole of a client's decisions; the
// bindings and the simulator drive the same objects.
//
// Thread-safety: any thread; each member has its own leaf lock.
// Ownership:     outlives every operation that was given it.
#pragma once

#include <atomic>
#include <cstdint>

#include "mooncake-store/src/client/client_options.h"
#include "mooncake-store/src/client/descriptor_cache.h"
#include "mooncake-store/src/client/membership.h"
#include "mooncake-store/src/client/segment_table.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

class ClientCore {
 public:
  explicit ClientCore(ClientOptions options)
      : options_(std::move(options)),
        cache_(options_.descriptor_cache ? options_.descriptor_cache_entries : 0),
        segments_(options_.client, options_.host_id),
        next_chain_((options_.client.first ^ options_.client.second) | 1U) {}

  [[nodiscard]] const ClientOptions& options() const { return options_; }
  [[nodiscard]] DescriptorCache& cache() { return cache_; }
  [[nodiscard]] PeerSegmentTable& segments() { return segments_; }
  [[nodiscard]] Membership& membership() { return membership_; }

  // Who asks, with the cache hits that have not been reported yet.
  [[nodiscard]] Caller MakeCaller() {
    return {.client = options_.client,
            .tenant = options_.tenant,
            .cache_hits = unreported_hits_.exchange(0, std::memory_order_relaxed),
            .cache_hit_bytes = unreported_hit_bytes_.exchange(0, std::memory_order_relaxed)};
  }
  void CountCacheHit(std::uint64_t bytes) {
    unreported_hits_.fetch_add(1, std::memory_order_relaxed);
    unreported_hit_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  // New for each call, never zero; also spreads retries.
  [[nodiscard]] std::uint64_t NextChain() {
    return next_chain_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  const ClientOptions options_;
  DescriptorCache cache_;
  PeerSegmentTable segments_;
  Membership membership_;
  std::atomic<std::uint64_t> unreported_hits_{0};
  std::atomic<std::uint64_t> unreported_hit_bytes_{0};
  std::atomic<std::uint64_t> next_chain_;
};

}  // namespace mooncake::store
