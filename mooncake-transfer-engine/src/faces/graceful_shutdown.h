// Stops engines when the process is told to end.
//
// Thread-safety: AddToGracefulShutdown from any thread.
#pragma once

#include <memory>

#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

namespace mooncake::transfer {

// From now on SIGTERM and SIGINT stop `engine` (and all others added) and end the process with
// 128 + signal; so does a normal exit, with its own code. Takes over the two signals' handlers at
// the first call.
void AddToGracefulShutdown(const std::shared_ptr<Engine>& engine);

}  // namespace mooncake::transfer
