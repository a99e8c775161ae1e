// Lets go of the interpreter lock while C++ works, in a way that the end of the process survives.
//
// Python ends a daemon thread where it asks for the lock again after the interpreter began to end:
// in the middle of a C++ call that aborts the process, or leaves it hanging. So the interpreter
// does not end before all threads have come back to Python, and from then on calls keep the lock.
// Who does not come back within kPatience never does: it sleeps, and the process ends beside it.
//
// A module uses it wherever others use pybind11's gil_scoped_release, and calls EndWith() when it
// is loaded. What C++ takes the lock for meanwhile, by gil_scoped_acquire, must be brief.
//
// Thread-safety: made and destroyed by a thread that holds the interpreter lock.
#pragma once

#include <pthread.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/parking.h"

namespace mooncake::integration {

class Unlocked {
 public:
  Unlocked() {
    if (!ending.load()) {
      under_way.fetch_add(1);
      state_ = PyEval_SaveThread();
    }
  }
  ~Unlocked() {
    if (state_ == nullptr) {
      return;
    }
    while (too_late.load()) {
      static_cast<void>(Event().Wait(Instant::max()));
    }
    PyEval_RestoreThread(state_);
    if (under_way.fetch_sub(1) == 1 && ending.load()) {
      all_back.Notify();
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  // Makes the interpreter call `close_all` when it ends: to end the calls that are under way, so
  // that their threads come back. It is called without the lock, and other threads may still call.
  static void EndWith(void (*close_all)()) {
    // Of the threads that are in a call a forked process has none.
    static_cast<void>(::pthread_atfork(nullptr, nullptr, [] { under_way.store(0); }));
    pybind11::module_::import("atexit").attr("register")(
        pybind11::cpp_function([close_all] { End(close_all); }));
  }

 private:
  static constexpr Duration kPatience = std::chrono::seconds(30);

  static void End(void (*close_all)()) {
    ending.store(true);
    PyThreadState* const state = PyEval_SaveThread();
    close_all();
    if (under_way.load() != 0 && !all_back.Wait(SteadyClock::Get().Now() + kPatience)) {
      too_late.store(true);
    }
    PyEval_RestoreThread(state);
  }

  // One for each extension module. `under_way` only falls once `ending` is set.
  static inline std::atomic<bool> ending{false};
  static inline std::atomic<bool> too_late{false};
  static inline std::atomic<std::int64_t> under_way{0};
  static inline Event all_back;

  PyThreadState* state_ = nullptr;
};

// The deleter of a shared_ptr to what waits for threads as it ends, and may be let go of by a
// thread with the interpreter lock or without: it ends without.
template <typename T>
void DeleteUnlocked(T* object) {
  std::optional<Unlocked> unlocked;
  if (PyGILState_Check() != 0) {
    unlocked.emplace();
  }
  delete object;  // NOLINT(cppcoreguidelines-owning-memory): the shared_ptr's deleter.
}

}  // namespace mooncake::integration
