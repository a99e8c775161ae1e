// The thread that keeps a client known to its master: pings, mounts everything again after a
// restart, takes back what was retracted. A call that hangs does not stop the pings.
//
// Thread-safety: Start() and Stop() from the owner's thread.
// Ownership:     borrows what it is made of.
#pragma once

#include <atomic>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/master_link.h"
#include "mooncake-store/src/client/pending_calls.h"

namespace mooncake::store {

class Heartbeat {
 public:
  Heartbeat(ClientCore& core, MasterLink& master) : core_(core), master_(master), calls_(master) {}
  ~Heartbeat() { Stop(); }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  [[nodiscard]] Result<void> Start();
  // Ends with the calls that are under way; stop the link first to end those at once. May be called
  // twice.
  void Stop();

 private:
  void Run();

  ClientCore& core_;
  MasterLink& master_;
  PendingCalls calls_;  // Of the thread, but for Wake().
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace mooncake::store
