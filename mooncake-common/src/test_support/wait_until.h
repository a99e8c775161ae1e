// How a test waits: for a condition, however long that takes, and not for a time.
#pragma once

#include <chrono>
#include <thread>

#include "mooncake-common/src/base/clock.h"

namespace mooncake {

// Only a hang lasts as long: no wait of a healthy test comes near, whatever else the machine does.
// Far less than ctest grants a test, so that the test says itself what it waited for.
inline constexpr Duration kHangLimit = std::chrono::seconds(60);
inline constexpr int kHangLimitMs =
    static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kHangLimit).count());

// When what begins now counts as hanging.
inline Instant HangDeadline() { return SteadyClock::Get().Now() + kHangLimit; }

// Asks `condition` until it holds; false when that takes longer than kHangLimit.
template <typename Condition>
[[nodiscard]] bool WaitUntil(const Condition& condition) {
  const Instant deadline = HangDeadline();
  // Most conditions hold at once; a test that waits longer leaves the processor to others.
  constexpr int kYields = 1000;
  for (int turn = 0; !condition(); ++turn) {
    if (SteadyClock::Get().Now() >= deadline) {
      return false;
    }
    if (turn < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  return true;
}

}  // namespace mooncake
