#include "mooncake-transfer-engine/src/faces/graceful_shutdown.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/thread.h"

namespace mooncake::transfer {

namespace {

// Engines to stop, and the thread that hears of signals through a pipe: a handler itself may only
// write. Never destroyed, because a signal may come at any time.
class Shutdown {
 public:
  static Shutdown& Get() {
    static auto* const shutdown = new Shutdown();
    return *shutdown;
  }

  void Add(const std::shared_ptr<Engine>& engine) {
    const MutexLock lock(mutex_);
    std::erase_if(engines_, [](const auto& one) { return one.expired(); });
    engines_.push_back(engine);
    if (!std::exchange(installed_, true)) {
      Install();
    }
  }

 private:
  void Install() MC_REQUIRES(mutex_) {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) {
      MC_LOG_WARNING("enable graceful shutdown: no descriptor is free; signals end at once");
      return;
    }
    auto watcher = Thread::Start("mc-shutdown", [this] { Watch(); });
    if (!watcher) {
      MC_LOG_WARNING("enable graceful shutdown: {}", watcher.error().ToString());
      return;
    }
    watcher_ = std::move(watcher).value();
    struct sigaction action{};
    action.sa_handler = [](int signal) {
      const int saved = errno;
      const auto byte = static_cast<unsigned char>(signal);
      static_cast<void>(!::write(Get().pipe_[1], &byte, 1));
      errno = saved;
    };
    ::sigaction(SIGTERM, &action, nullptr);
    ::sigaction(SIGINT, &action, nullptr);
    std::atexit([] { Get().StopAll(); });  // NOLINT(cert-err33-c): without it only exit is rude.
  }

  void Watch() {
    constexpr int kSignalBase = 128;  // Exit codes of processes that a signal ended.
    unsigned char signal = 0;
    while (::read(pipe_[0], &signal, 1) != 1) {
      if (errno != EINTR) {
        return;
      }
    }
    StopAll();
    std::_Exit(kSignalBase + signal);
  }

  void StopAll() {
    std::vector<std::weak_ptr<Engine>> engines;
    {
      const MutexLock lock(mutex_);
      engines = engines_;  // Kept: a second call, at exit, waits for what the first is stopping.
    }
    for (const auto& one : engines) {
      if (const auto engine = one.lock()) {
        engine->Stop();
      }
    }
  }

  Mutex mutex_;
  std::vector<std::weak_ptr<Engine>> engines_ MC_GUARDED_BY(mutex_);
  bool installed_ MC_GUARDED_BY(mutex_) = false;
  int pipe_[2] = {-1, -1};
  Thread watcher_;
};

}  // namespace

void AddToGracefulShutdown(const std::shared_ptr<Engine>& engine) { Shutdown::Get().Add(engine); }

}  // namespace mooncake::transfer
