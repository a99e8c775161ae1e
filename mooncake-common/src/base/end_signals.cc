#include "mooncake-common/src/base/end_signals.h"

namespace mooncake {

EndSignals EndSignals::Block() {
  std::signal(SIGPIPE, SIG_IGN);
  EndSignals ends;
  sigemptyset(&ends.signals_);
  sigaddset(&ends.signals_, SIGINT);
  sigaddset(&ends.signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends.signals_, nullptr);
  return ends;
}

int EndSignals::Wait() const {
  int signal = 0;
  sigwait(&signals_, &signal);
  return signal;
}

}  // namespace mooncake
