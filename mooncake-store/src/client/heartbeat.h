// The thread that keeps a client known to its master: pings, and mounts everything again after a
// restart.
//
// Thread-safety: Start() and Stop() from the owner's thread.
// Ownership:     borrows what it is made of.
#pragma once

#include <atomic>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/master_link.h"

namespace mooncake::store {

class Heartbeat {
 public:
  Heartbeat(ClientCore& core, MasterLink& master) : core_(core), master_(master) {}
  ~Heartbeat() { Stop(); }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  [[nodiscard]] Result<void> Start();
  // Ends within the master's call that is under way; stop the link first to end that too. May be
  // called twice.
  void Stop();

 private:
  void Run();

  ClientCore& core_;
  MasterLink& master_;
  std::atomic<bool> stopping_{false};
  Event stop_;
  Thread thread_;
};

}  // namespace mooncake::store
