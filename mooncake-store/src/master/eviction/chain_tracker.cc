#include "mooncake-store/src/master/eviction/chain_tracker.h"

#include <algorithm>

#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

ChainTracker::Client& ChainTracker::ClientOf(std::uint64_t client) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) {
    recency_.splice(recency_.begin(), recency_, found->second.recency);
    return found->second;
  }
  if (clients_.size() == kClients) {
    clients_.erase(recency_.back());
    recency_.pop_back();
  }
  recency_.push_front(client);
  Client& created = clients_[client];
  created.recency = recency_.begin();
  return created;
}

void ChainTracker::OnLookup(const ChainEvent& event) {
  const MutexLock lock(mutex_);
  std::vector<Chain>& lookups = ClientOf(event.client).lookups;
  auto chain = std::ranges::find_if(lookups, [&](const Chain& known) {
    return known.id == event.chain_id && known.keys.size() == event.position;
  });
  if (chain == lookups.end()) {
    if (event.position != 0) {
      return;  // Its beginning is not known.
    }
    if (lookups.size() < kChainsPerClient) {
      lookups.emplace_back();
    }
    chain = lookups.end() - 1;
    chain->id = event.chain_id;
    chain->keys.clear();
  }
  const std::size_t room = kMaxKeysPerBatch - std::min(kMaxKeysPerBatch, chain->keys.size());
  const auto keys = event.keys.first(std::min(room, event.keys.size()));
  chain->keys.insert(chain->keys.end(), keys.begin(), keys.end());
  std::rotate(lookups.begin(), chain, chain + 1);
}

void ChainTracker::OnPut(const ChainEvent& puts, std::span<ChainKey> parents) {
  const MutexLock lock(mutex_);
  Client& client = ClientOf(puts.client);
  ChainKey previous;  // In the put call.
  if (puts.position != 0 && client.put_chain == puts.chain_id) {
    previous = client.last_put;
  }
  std::vector<ChainKey>* lookup = nullptr;
  std::ptrdiff_t from = 0;  // In it: puts come in the order of the lookup.
  for (std::size_t at = 0; at < puts.keys.size(); ++at) {
    const ChainKey key = puts.keys[at];
    parents[at] = previous;
    previous = key;
    auto found = std::vector<ChainKey>::iterator{};
    const auto find_in = [&](std::vector<ChainKey>& keys) {
      found = std::ranges::find(keys.begin() + from, keys.end(), key.hash, &ChainKey::hash);
      return found != keys.end();
    };
    if (at == 0) {
      const auto chain = std::ranges::find_if(
          client.lookups, [&](Chain& candidate) { return find_in(candidate.keys); });
      lookup = chain == client.lookups.end() ? nullptr : &chain->keys;
    } else if (lookup != nullptr && !find_in(*lookup)) {
      lookup = nullptr;  // Not worth searching for each of its keys.
    }
    if (lookup == nullptr) {
      continue;
    }
    parents[at] = found == lookup->begin() ? ChainKey{} : *(found - 1);
    found->slot = key.slot;
    from = found - lookup->begin() + 1;
  }
  client.put_chain = puts.chain_id;
  client.last_put = previous;
}

}  // namespace mooncake::store
