// The only place that makes threads: one with a name, and a small pool with a bounded queue.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake {

// A running thread that is joined when it goes out of scope.
//
// Thread-safety: none; its owner has it. The body must end by itself when its owner wants it to:
// tell it before the destructor waits for it.
class Thread {
 public:
  Thread() = default;
  ~Thread() { Join(); }
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&& other) noexcept;

  // Starts `body` on a thread whose name tools show, cut to the kernel's 15 bytes. The thread takes
  // no signals that are meant for the process: they stay with the host program's threads.
  //
  // Errors: kExhausted if the system gives no thread.
  [[nodiscard]] static Result<Thread> Start(std::string_view name,
                                            std::move_only_function<void()> body);

  // Waits for the end of the body. May be called twice.
  void Join();

 private:
  std::thread thread_;
};

// A few threads that run tasks in the order of their arrival.
//
// Thread-safety: Submit() from any thread, tasks included; Start() and Stop() from the owner's.
class Executor {
 public:
  struct Options {
    std::string name = "executor";
    std::size_t threads = 1;
    std::size_t max_queued = 1024;
  };
  using Task = std::move_only_function<void()>;

  explicit Executor(Options options) : options_(std::move(options)) {}
  ~Executor() { Stop(); }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Errors: kExhausted if the system gives no threads; none is left running then. Once only.
  [[nodiscard]] Result<void> Start();

  // Takes the task, or returns false when the queue is full or Stop() was called; the task is
  // destroyed then. Before Start() tasks queue.
  [[nodiscard]] bool Submit(Task task) MC_EXCLUDES(mutex_);

  // Refuses new tasks, runs those that are queued (if it was started), joins. May be called twice,
  // but not from a task.
  void Stop() MC_EXCLUDES(mutex_);

 private:
  void Run() MC_EXCLUDES(mutex_);

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> queue_ MC_GUARDED_BY(mutex_);
  bool stopping_ MC_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;  // The owner's.
};

}  // namespace mooncake
