// Makes the pages of memory before somebody needs them. The first touch of a page of shared memory
// costs a copy several times what the copying does, and whoever puts into a new segment would pay
// it.
//
// A thread of low priority does it in small steps and ends when nothing is left to do. Where others
// want the processors it rests between the steps, since many of low priority together still take a
// share. It leaves the rest to the first touch once less than a quarter of the memory of this
// machine, or of this container, is available: memory that was only promised is not taken from
// others.
//
// Thread-safety: all methods, from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/thread.h"

namespace mooncake::transfer {

// How long whoever works in the background rests after a step, so that it takes what nobody else
// wants. Thread-safety: none.
class BackgroundPace {
 public:
  // `took` of the clock and `ran` on a processor.
  [[nodiscard]] Duration PauseAfter(Duration took, Duration ran);

 private:
  Duration pause_{};
  int quiet_steps_ = 0;
};

class PageWarmer {
 public:
  static constexpr std::uint64_t kStepBytes = 256U << 10U;  // About 0.2 ms.

  // What the thread does to the machine; tests give their own.
  struct Machine {
    // Makes the pages of a range; false when this range cannot be treated so.
    std::function<bool(std::byte*, std::uint64_t)> populate;
    // Of all memory, from 0 to 1; asked before every 64th step.
    std::function<double()> available_share;
    // For how long the calling thread has run on a processor.
    std::function<Duration()> ran;
  };
  [[nodiscard]] static Machine ThisMachine();

  explicit PageWarmer(Machine machine = ThisMachine()) : machine_(std::move(machine)) {}
  ~PageWarmer() { Stop(); }
  PageWarmer(const PageWarmer&) = delete;
  PageWarmer& operator=(const PageWarmer&) = delete;

  void Add(std::byte* address, std::uint64_t length_bytes) MC_EXCLUDES(mutex_);
  // Afterwards the range that begins at `address` is not touched any more; none is no mistake.
  void Remove(const std::byte* address) MC_EXCLUDES(mutex_);
  // Forgets all and joins. No Add has an effect afterwards.
  void Stop() MC_EXCLUDES(mutex_);
  // Waits until nothing is left to do.
  void Drain() MC_EXCLUDES(mutex_);

 private:
  struct Range {
    std::byte* address;
    std::uint64_t length_bytes;
    std::uint64_t done_bytes = 0;
  };

  void Run() MC_EXCLUDES(mutex_);
  // Until then, or nothing is left to do.
  void Rest(Instant until) MC_REQUIRES(mutex_);

  const Machine machine_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Range> ranges_ MC_GUARDED_BY(mutex_);
  const std::byte* busy_ MC_GUARDED_BY(mutex_) = nullptr;  // Begin of the range that is in a step.
  bool running_ MC_GUARDED_BY(mutex_) = false;
  bool stopping_ MC_GUARDED_BY(mutex_) = false;
  Thread thread_ MC_GUARDED_BY(mutex_);
};

// MemAvailable / MemTotal of the text of /proc/meminfo; 1 if it does not tell.
[[nodiscard]] double AvailableShareOfMachine(std::string_view meminfo);
// What a control group leaves of its limit, by the texts of its memory.max, memory.current and
// memory.stat; pages of files that could be dropped count as left. 1 without a limit.
[[nodiscard]] double AvailableShareOfGroup(std::string_view max, std::string_view current,
                                           std::string_view stat);

}  // namespace mooncake::transfer
