#include "mooncake-store/src/master/clients.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace mooncake::store {

bool ClientMonitor::Known(const Uuid& client) const {
  const MutexLock lock(mutex_);
  return by_id_.contains(client);
}

Duration ClientMonitor::SilentFor(const Uuid& client, Instant now) const {
  const MutexLock lock(mutex_);
  const auto found = by_id_.find(client);
  return found == by_id_.end() ? Duration::max() : now - found->second->last_seen;
}

bool ClientMonitor::AnySilentFor(Duration silence, Instant now) const {
  const MutexLock lock(mutex_);
  return !clients_.empty() && now - clients_.front().last_seen >= silence;
}

std::vector<Uuid> ClientMonitor::Silent(Instant now) const {
  std::vector<Uuid> silent;
  const MutexLock lock(mutex_);
  for (const Client& client : clients_) {
    if (now - client.last_seen < ttl_) {
      break;
    }
    silent.push_back(client.id);
  }
  std::ranges::sort(silent);
  return silent;
}

void ClientMonitor::Apply(const ClientEvent& event) {
  const MutexLock lock(mutex_);
  const auto found = by_id_.find(event.client);
  if (event.kind == ClientEventKind::kLost) {
    if (found != by_id_.end()) {
      clients_.erase(found->second);
      by_id_.erase(found);
    }
  } else if (found == by_id_.end()) {
    by_id_[event.client] = clients_.insert(clients_.end(), {event.client, event.now});
  } else {
    // Threads may tell of the same moments in another order: the list is in order give or take
    // that.
    found->second->last_seen = std::max(found->second->last_seen, event.now);
    clients_.splice(clients_.end(), clients_, found->second);
  }
}

std::size_t ClientMonitor::size() const {
  const MutexLock lock(mutex_);
  return clients_.size();
}

std::string ClientMonitor::Dump() const {
  std::map<Uuid, Instant> ordered;
  {
    const MutexLock lock(mutex_);
    for (const Client& client : clients_) {
      ordered[client.id] = client.last_seen;
    }
  }
  std::string text;
  for (const auto& [id, seen] : ordered) {
    text += fmt::format("client {} seen {}\n", id.ToString(), seen.time_since_epoch().count());
  }
  return text;
}

}  // namespace mooncake::store
