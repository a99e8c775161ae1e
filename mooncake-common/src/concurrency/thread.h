// The only place that makes threads.
//
// There is no pool of them: who needs one has a loop of its own, and work runs on the thread that
// brought it.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "mooncake-common/src/base/result.h"

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

  // The same for a body that nobody waits for, because nobody can end what it does. It may run on
  // while the process ends, so it shares all that it uses.
  //
  // Errors: those of Start(); the body has been destroyed by then.
  [[nodiscard]] static Result<void> StartDetached(std::string_view name,
                                                  std::move_only_function<void()> body);

  // Waits for the end of the body. May be called twice.
  void Join();

 private:
  std::thread thread_;
};

}  // namespace mooncake
