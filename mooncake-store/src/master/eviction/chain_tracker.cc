#include "mooncake-store/src/master/eviction/chain_tracker.h"

namespace mooncake::store {

ClientChains& ChainTracker::ChainsOf(std::uint64_t client) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) {
    recency_.splice(recency_.begin(), recency_, found->second.recency);
    return found->second.chains;
  }
  if (clients_.size() == kClients) {
    ForgetLast();
  }
  recency_.push_front(client);
  Client& created = clients_[client];
  created.recency = recency_.begin();
  return created.chains;
}

void ChainTracker::ForgetLast() {
  const auto last = clients_.find(recency_.back());
  keys_ -= last->second.chains.key_count();
  clients_.erase(last);
  recency_.pop_back();
}

bool ChainTracker::OnLookup(const ChainEvent& event, bool reads) {
  const MutexLock lock(mutex_);
  ClientChains& chains = ChainsOf(event.client);
  keys_ -= chains.key_count();
  const bool again = chains.OnLookup(event, reads);
  keys_ += chains.key_count();
  while (keys_ > kKeys && clients_.size() > 1) {
    ForgetLast();
  }
  return again;
}

ChainKey ChainTracker::ParentOfFirst(const ChainEvent& puts) {
  const MutexLock lock(mutex_);
  return ChainsOf(puts.client).ParentOfFirst(puts);
}

void ChainTracker::OnPut(const ChainEvent& puts, std::span<ChainKey> parents) {
  const MutexLock lock(mutex_);
  ChainsOf(puts.client).OnPut(puts, parents);
}

}  // namespace mooncake::store
