#include "mooncake-common/src/base/wall_clock.h"

namespace mooncake {

Duration SinceUnixEpoch() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace mooncake
