// Folds lines that repeat: a peer that fails twenty thousand times fills a few lines with a count,
// not the disk.
//   if (const auto times = fold_.Admit(now)) {
//     MC_LOG_WARNING("send to {}: {} ({} times)", peer, why, times);
//   }
// One for each thing that may fail over and over (a peer, a disk), not one for all of them.
//
// Thread-safety: any thread; no lock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "mooncake-common/src/base/clock.h"

namespace mooncake {

class LogFold {
 public:
  explicit LogFold(Duration period = std::chrono::seconds(10)) : period_(period) {}

  // How many occurrences the line to be written now stands for: 1 for the first, later this one and
  // all that were held back; 0: write nothing. At most one line in each period.
  [[nodiscard]] std::uint64_t Admit(Instant now);

 private:
  const Duration period_;
  std::atomic<std::int64_t> next_ns_{INT64_MIN};  // When the next line may be written.
  std::atomic<std::uint64_t> held_back_{0};
};

}  // namespace mooncake
