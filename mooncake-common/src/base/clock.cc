#include "mooncake-common/src/base/clock.h"

namespace mooncake {

Instant SteadyClock::Now() const {
  return Instant(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

const SteadyClock& SteadyClock::Get() {
  static const SteadyClock clock;
  return clock;
}

}  // namespace mooncake
