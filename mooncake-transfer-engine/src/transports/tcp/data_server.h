// The data port: accepts connections and serves each by a ServerSession on the reactor.
//
// Connections take turns, a bounded amount of bytes each, and one whose peer does not read is left
// alone until it does, so that none stalls another. Where there are as many as there may be, the
// one that has been idle for longest makes room: its peer opens another when it needs one.
//
// Thread-safety: Start() and Stop() on the owner's thread; everything else happens on the
//                reactor's.
// Ownership:     borrows regions and reactor, which must outlive it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "mooncake-common/src/base/log_fold.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/net/acceptor.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/engine/remote_check.h"

namespace mooncake::transfer {

class DataServer {
 public:
  DataServer(Reactor& reactor, RegionTable& regions, RemoteCheck check, std::size_t max_connections)
      : reactor_(reactor),
        regions_(regions),
        check_(check),
        max_connections_(std::max<std::size_t>(max_connections, 1)) {}
  ~DataServer() { Stop(); }
  DataServer(const DataServer&) = delete;
  DataServer& operator=(const DataServer&) = delete;

  // Serves connections to `listener`, which it owns from now on.
  [[nodiscard]] Result<void> Start(UniqueFd listener);
  // Closes all connections; nothing is read or written after it returns. Twice is fine.
  void Stop();

 private:
  class Connection;

  void Admit(UniqueFd fd);
  void Remove(std::uint64_t id);

  Reactor& reactor_;
  RegionTable& regions_;
  const RemoteCheck check_;
  const std::size_t max_connections_;
  Acceptor acceptor_{reactor_, "data port"};
  LogFold refused_;  // Of connections whose peers speak nonsense.
  LogFold crowded_out_;
  std::list<Connection*> by_use_;  // The reactor's: the one that is idle for longest first.
  Mutex mutex_;
  bool stopped_ MC_GUARDED_BY(mutex_) = false;
  std::uint64_t next_id_ MC_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
