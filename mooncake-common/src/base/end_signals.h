// How a program is told to end: SIGINT and SIGTERM, awaited by its main thread instead of
// interrupting whatever runs.
//
// Thread-safety: none; main() has it. Block() before any thread exists that does not block signals
// itself (mooncake::Thread does).
#pragma once

#include <csignal>

namespace mooncake {

class EndSignals {
 public:
  // From now on the two signals are kept for Wait(), and a peer that has gone is an error of the
  // write that finds out (no SIGPIPE).
  [[nodiscard]] static EndSignals Block();

  // Returns the signal that came; one that came since Block() at once.
  [[nodiscard]] int Wait() const;

 private:
  EndSignals() = default;
  sigset_t signals_{};
};

}  // namespace mooncake
