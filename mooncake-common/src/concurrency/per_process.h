// A value under a lock, of one process: a forked child begins with a value of its own, and leaves
// its parent's as it is. For what stands on threads, sockets and locks that a child does not have.
//
// Thread-safety: any thread; `work` runs under the lock, and keeps the value from others so long.
// Forks:         counted by pthread_atfork(), so for fork() and whatever calls it. A child never
//                frees what it left: that is the parent's, and may be in the middle of a change.
#pragma once

#include <atomic>
#include <cstdint>

#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake {

// Which process this is, counted in forks since the first call; equal only within one process.
[[nodiscard]] std::uint64_t ForkCount();

template <typename T>
class PerProcess {
 public:
  PerProcess() : mine_(new Mine{.fork_count = ForkCount(), .mutex = {}, .value = {}}) {}
  ~PerProcess() {
    if (Mine* const mine = mine_.load(); mine->fork_count == ForkCount()) {
      delete mine;
    }
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  // Returns `work(value)`.
  template <typename Work>
  auto With(Work work) -> decltype(auto) {
    Mine& mine = OfThisProcess();
    const MutexLock lock(mine.mutex);
    return work(mine.value);
  }

 private:
  struct Mine {
    const std::uint64_t fork_count;
    Mutex mutex;
    T value MC_GUARDED_BY(mutex);
  };

  Mine& OfThisProcess() {
    Mine* mine = mine_.load();
    if (mine->fork_count == ForkCount()) {
      return *mine;
    }
    auto* const fresh = new Mine{.fork_count = ForkCount(), .mutex = {}, .value = {}};
    if (mine_.compare_exchange_strong(mine, fresh)) {
      return *fresh;
    }
    delete fresh;  // Another thread was first.
    return *mine;
  }

  std::atomic<Mine*> mine_;
};

}  // namespace mooncake
