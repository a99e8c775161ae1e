// Finds the parent of a key that is put: the key before it in its chain. A put batch holds only the
// keys that were missing, so its order is not enough; the lookup that found them missing is
// remembered, by client.
//
// Thread-safety: any thread; one leaf lock.
// Bounds:        the last kChainsPerClient lookups of kMaxKeysPerBatch keys, of kClients clients.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/eviction/policy.h"

namespace mooncake::store {

class ChainTracker {
 public:
  // A window of a lookup, with the slots of the keys found.
  void OnLookup(const ChainEvent& event) MC_EXCLUDES(mutex_);

  // A window of puts, with the slots that its keys were given (kNoSlot: refused). Sets parents[i]
  // for each key (hash 0: none known). A key that no remembered lookup holds has the key before it
  // in the put call as its parent.
  void OnPut(const ChainEvent& puts, std::span<ChainKey> parents) MC_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kChainsPerClient = 4;
  static constexpr std::size_t kClients = 256;

  struct Chain {
    std::uint64_t id = 0;
    std::vector<ChainKey> keys;
  };
  struct Client {
    std::vector<Chain> lookups;  // Newest first.
    std::uint64_t put_chain = 0;
    ChainKey last_put;  // Of that chain.
    std::list<std::uint64_t>::iterator recency;
  };

  Client& ClientOf(std::uint64_t client) MC_REQUIRES(mutex_);

  Mutex mutex_;
  std::unordered_map<std::uint64_t, Client> clients_ MC_GUARDED_BY(mutex_);
  std::list<std::uint64_t> recency_ MC_GUARDED_BY(mutex_);  // Newest first.
};

}  // namespace mooncake::store
