// Decides which clients are alive, from their messages and the passing of time.
//
// Sans-I/O. Thread-safety: any thread; one leaf lock.
// Cost:          O(1) a message; questions cost only for the clients that they name or return.
#pragma once

#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/event.h"

namespace mooncake::store {

class ClientMonitor {
 public:
  explicit ClientMonitor(Duration ttl) : ttl_(ttl) {}

  // Clients that nobody knows are told to mount again what they have.
  [[nodiscard]] bool Known(const Uuid& client) const MC_EXCLUDES(mutex_);
  // How long it has said nothing; Duration::max() for a client that is not known.
  [[nodiscard]] Duration SilentFor(const Uuid& client, Instant now) const MC_EXCLUDES(mutex_);
  // Whether any known client has been silent for so long.
  [[nodiscard]] bool AnySilentFor(Duration silence, Instant now) const MC_EXCLUDES(mutex_);
  // Those silent for the TTL or longer, in id order. Asking late only delays the answer.
  [[nodiscard]] std::vector<Uuid> Silent(Instant now) const MC_EXCLUDES(mutex_);
  void Apply(const ClientEvent& event) MC_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size() const MC_EXCLUDES(mutex_);
  [[nodiscard]] std::string Dump() const MC_EXCLUDES(mutex_);

 private:
  struct Client {
    Uuid id;
    Instant last_seen;
  };

  const Duration ttl_;
  mutable Mutex mutex_;
  std::list<Client> clients_ MC_GUARDED_BY(mutex_);  // The longest silent first.
  std::unordered_map<Uuid, std::list<Client>::iterator> by_id_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::store
