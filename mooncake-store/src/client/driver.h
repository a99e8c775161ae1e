// Drives operations against a real master and a real engine, on the thread that wants their result.
//
// An operation that wants one thing at a time, as most do, costs no hand-off: its call is sent,
// awaited and answered, and its bytes are moved, by this thread. What it wants at the same time
// (the next window's start while this one's bytes move, a lease's renewal during a long read)
// travels in the background meanwhile.
//
// Thread-safety: Run() from any number of threads at once, each with an operation of its own.
// Ownership:     borrows what it is made of.
#pragma once

#include <memory>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/client/master_link.h"
#include "mooncake-store/src/client/operation.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

namespace mooncake::store {

class Driver {
 public:
  Driver(MasterLink& master, transfer::Engine& engine) : master_(master), engine_(engine) {}

  // Until the operation is done.
  void Run(Operation& operation);

 private:
  class Turn;

  MasterLink& master_;
  transfer::Engine& engine_;
};

}  // namespace mooncake::store
