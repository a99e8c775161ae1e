#include "mooncake-common/src/concurrency/thread.h"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <string>
#include <system_error>
#include <utility>

namespace mooncake {
namespace {

constexpr std::size_t kNameMaxBytes = 15;

// All but those that the thread itself causes, which must reach their handlers, and those of
// profilers.
sigset_t SignalsForOthers() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF}) {
    sigdelset(&signals, own);
  }
  return signals;
}

}  // namespace

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this != &other) {
    Join();
    thread_ = std::move(other.thread_);
  }
  return *this;
}

Result<void> Thread::StartDetached(std::string_view name, std::move_only_function<void()> body) {
  MC_TRY_ASSIGN(Thread started, Start(name, std::move(body)));
  started.thread_.detach();
  return {};
}

Result<Thread> Thread::Start(std::string_view name, std::move_only_function<void()> body) {
  // A new thread inherits the mask of its maker.
  const sigset_t blocked = SignalsForOthers();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  Thread started;
  int failure = 0;
  try {
    started.thread_ = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    failure = error.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure != 0) {
    return Fail(ErrorCode::kExhausted,
                fmt::format("start thread {}: {}; see ulimit -u and the pids limit of the cgroup",
                            name, std::generic_category().message(failure)));
  }
  pthread_setname_np(started.thread_.native_handle(),
                     std::string(name.substr(0, kNameMaxBytes)).c_str());
  return started;
}

void Thread::Join() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace mooncake
