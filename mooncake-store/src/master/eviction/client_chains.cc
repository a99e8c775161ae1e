#include "mooncake-store/src/master/eviction/client_chains.h"

#include <algorithm>

namespace mooncake::store {

namespace {

// The newest lookups are searched, too, when none goes on with the key.
constexpr std::size_t kChainsSearched = 4;
// Keys of a chain that are searched for one.
constexpr std::size_t kKeysSearched = 1024;

// Of the key, from `from` on; keys.size() if it is not there.
std::size_t Find(const std::vector<ChainKey>& keys, std::size_t from, std::uint64_t hash) {
  const std::size_t end = std::min(from + kKeysSearched, keys.size());
  while (from < end && keys[from].hash != hash) {
    ++from;
  }
  return from < end ? from : keys.size();
}

}  // namespace

template <typename Visit>
bool ClientChains::AnyOf(std::size_t most, Visit visit) {
  most = std::min(most, ring_.size());
  for (std::size_t back = 0; back < most; ++back) {
    if (visit(ring_[(newest_ + ring_.size() - back) % ring_.size()])) {
      return true;
    }
  }
  return false;
}

void ClientChains::Move(const Chain& chain, Cursor& cursor, std::size_t to) {
  cursor = {.at = to, .hash = to < chain.keys.size() ? chain.keys[to].hash : 0};
}

void ClientChains::MoveToMissing(Chain& chain, std::size_t to) {
  while (to < chain.keys.size() && chain.keys[to].slot != kNoSlot) {
    ++to;
  }
  Move(chain, chain.put, to);
}

bool ClientChains::ReadFrom(Chain& chain, const ChainEvent& event) {
  // What the client's own cache answered is left out, so the keys need not be neighbours.
  std::size_t at = chain.read.at;
  for (const ChainKey& key : event.keys) {
    at = Find(chain.keys, at, key.hash);
    if (at == chain.keys.size()) {
      return false;
    }
    ++at;
  }
  Move(chain, chain.read, at);
  chain.read_by = event.chain_id;
  return true;
}

bool ClientChains::Reads(const ChainEvent& event) {
  const auto goes_on = [&](Chain& chain) {
    if (chain.read_by == event.chain_id && event.chain_id != 0) {
      (void)ReadFrom(chain, event);
      return true;  // The same call goes on, or asks again to renew its leases.
    }
    return chain.read.hash == event.keys[0].hash && ReadFrom(chain, event);
  };
  return AnyOf(kChains, goes_on) ||
         AnyOf(kChainsSearched, [&](Chain& chain) { return ReadFrom(chain, event); });
}

void ClientChains::Remember(const ChainEvent& event, bool reads) {
  Chain* chain = nullptr;
  if (event.position != 0) {
    const bool known = AnyOf(kChains, [&](Chain& each) {
      chain = &each;
      return each.id == event.chain_id && each.keys.size() == event.position;
    });
    if (!known) {
      return;  // Its beginning is not.
    }
  } else {
    if (ring_.size() < kChains) {
      newest_ = ring_.size();
      ring_.emplace_back();
    } else {
      newest_ = (newest_ + 1) % kChains;
    }
    chain = &ring_[newest_];
    key_count_ -= chain->keys.size();
    *chain = {.id = event.chain_id};
  }
  const std::size_t room = kMaxKeysPerBatch - std::min(kMaxKeysPerBatch, chain->keys.size());
  const auto keys = event.keys.first(std::min(room, event.keys.size()));
  chain->keys.insert(chain->keys.end(), keys.begin(), keys.end());
  key_count_ += keys.size();
  Move(*chain, chain->read, reads ? chain->keys.size() : chain->read.at);
  MoveToMissing(*chain, chain->put.at);
  for (std::size_t oldest = newest_ + 1; key_count_ > kKeys; ++oldest) {
    Chain& dropped = ring_[oldest % ring_.size()];
    key_count_ -= dropped.keys.size();
    dropped = {};
  }
}

bool ClientChains::OnLookup(const ChainEvent& event, bool reads) {
  if (event.keys.empty()) {
    return false;
  }
  const bool repeated = event.chain_id != 0 && AnyOf(kChains, [&](const Chain& chain) {
                          return chain.id == event.chain_id && event.position < chain.keys.size();
                        });
  if (repeated || (reads && Reads(event))) {
    return true;
  }
  Remember(event, reads);
  return false;
}

ClientChains::Place ClientChains::PlaceOfPut(std::uint64_t hash) {
  Place place;
  const bool goes_on = AnyOf(kChains, [&](Chain& chain) {
    place = {.chain = &chain, .at = chain.put.at};
    return chain.put.hash == hash && chain.put.at < chain.keys.size();
  });
  const bool found = goes_on || AnyOf(kChainsSearched, [&](Chain& chain) {
                       place = {.chain = &chain, .at = Find(chain.keys, 0, hash)};
                       return place.at < chain.keys.size();
                     });
  return found ? place : Place{};
}

ChainKey ClientChains::ParentOfFirst(const ChainEvent& puts) {
  if (puts.keys.empty()) {
    return {};
  }
  if (const Place place = PlaceOfPut(puts.keys[0].hash); place.chain != nullptr) {
    return place.at == 0 ? ChainKey{} : place.chain->keys[place.at - 1];
  }
  return puts.position != 0 && put_chain_ == puts.chain_id ? last_put_ : ChainKey{};
}

void ClientChains::OnPut(const ChainEvent& puts, std::span<ChainKey> parents) {
  ChainKey previous;  // In the put call.
  if (puts.position != 0 && put_chain_ == puts.chain_id) {
    previous = last_put_;
  }
  Place place;  // Puts come in the order of the lookup.
  Place next;   // Where they go on.
  for (std::size_t index = 0; index < puts.keys.size(); ++index) {
    const ChainKey key = puts.keys[index];
    parents[index] = previous;
    previous = key;
    if (index == 0) {
      place = PlaceOfPut(key.hash);
    } else if (place.chain != nullptr) {
      place.at = Find(place.chain->keys, place.at, key.hash);
      if (place.at == place.chain->keys.size()) {
        place = {};  // Not worth searching for each of its keys.
      }
    }
    if (place.chain == nullptr) {
      continue;
    }
    Chain& chain = *place.chain;
    parents[index] = place.at == 0 ? ChainKey{} : chain.keys[place.at - 1];
    chain.keys[place.at].slot = key.slot;
    next = {.chain = &chain, .at = ++place.at};
  }
  if (next.chain != nullptr) {
    MoveToMissing(*next.chain, next.at);  // Once: all behind it may be present.
  }
  put_chain_ = puts.chain_id;
  last_put_ = previous;
}

}  // namespace mooncake::store
