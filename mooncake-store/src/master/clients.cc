#include "mooncake-store/src/master/clients.h"

#include <fmt/format.h>

#include <algorithm>

namespace mooncake::store {

bool ClientMonitor::Known(const Uuid& client) const {
  const MutexLock lock(mutex_);
  return last_seen_.contains(client);
}

Duration ClientMonitor::SilentFor(const Uuid& client, Instant now) const {
  const MutexLock lock(mutex_);
  const auto found = last_seen_.find(client);
  return found == last_seen_.end() ? Duration::max() : now - found->second;
}

std::vector<Uuid> ClientMonitor::Silent(Instant now) const {
  std::vector<Uuid> silent;
  const MutexLock lock(mutex_);
  for (const auto& [client, seen] : last_seen_) {
    if (now - seen >= ttl_) {
      silent.push_back(client);
    }
  }
  return silent;
}

void ClientMonitor::Apply(const ClientEvent& event) {
  const MutexLock lock(mutex_);
  if (event.kind == ClientEventKind::kLost) {
    last_seen_.erase(event.client);
    return;
  }
  Instant& seen = last_seen_[event.client];
  seen = std::max(seen, event.now);
}

std::size_t ClientMonitor::size() const {
  const MutexLock lock(mutex_);
  return last_seen_.size();
}

std::string ClientMonitor::Dump() const {
  std::string text;
  const MutexLock lock(mutex_);
  for (const auto& [client, seen] : last_seen_) {
    text += fmt::format("client {} seen {}\n", client.ToString(), seen.time_since_epoch().count());
  }
  return text;
}

}  // namespace mooncake::store
