// Remembers what each client looked up last (client_chains.h tells what for).
//
// Thread-safety: any thread; one leaf lock.
// Bounds:        the last kClients clients, all together kKeys keys of 16 bytes.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/eviction/client_chains.h"
#include "mooncake-store/src/master/eviction/policy.h"

namespace mooncake::store {

class ChainTracker {
 public:
  static constexpr std::size_t kClients = 256;
  static constexpr std::size_t kKeys = std::size_t{1} << 20U;

  // As ClientChains' methods, of the client that the event names.
  bool OnLookup(const ChainEvent& event, bool reads) MC_EXCLUDES(mutex_);
  [[nodiscard]] ChainKey ParentOfFirst(const ChainEvent& puts) MC_EXCLUDES(mutex_);
  void OnPut(const ChainEvent& puts, std::span<ChainKey> parents) MC_EXCLUDES(mutex_);

 private:
  struct Client {
    ClientChains chains;
    std::list<std::uint64_t>::iterator recency;
  };

  ClientChains& ChainsOf(std::uint64_t client) MC_REQUIRES(mutex_);
  void ForgetLast() MC_REQUIRES(mutex_);

  Mutex mutex_;
  std::unordered_map<std::uint64_t, Client> clients_ MC_GUARDED_BY(mutex_);
  std::list<std::uint64_t> recency_ MC_GUARDED_BY(mutex_);  // Newest first.
  std::size_t keys_ MC_GUARDED_BY(mutex_) = 0;              // Of all clients.
};

}  // namespace mooncake::store
