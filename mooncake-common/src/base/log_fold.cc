#include "mooncake-common/src/base/log_fold.h"

namespace mooncake {

std::uint64_t LogFold::Admit(Instant now) {
  const std::int64_t now_ns = now.time_since_epoch().count();
  std::int64_t next_ns = next_ns_.load(std::memory_order_relaxed);
  // Of several threads whose period has just ended, one takes the line.
  if (now_ns < next_ns || !next_ns_.compare_exchange_strong(next_ns, now_ns + period_.count(),
                                                            std::memory_order_relaxed)) {
    held_back_.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  return held_back_.exchange(0, std::memory_order_relaxed) + 1;
}

}  // namespace mooncake
