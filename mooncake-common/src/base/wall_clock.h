// The time of day, for what outlives a process: numbers that must not repeat after a restart, and
// time stamps for people. Everything else uses Clock (clock.h).
//
// Thread-safety: any thread.
#pragma once

#include "mooncake-common/src/base/clock.h"

namespace mooncake {

// Since 1970-01-01 UTC. May jump, back too, when an operator or NTP sets the clock.
[[nodiscard]] Duration SinceUnixEpoch();

}  // namespace mooncake
