// The heart of a seeded simulation: a virtual clock, a queue of events, one source of randomness
// and a history.
//
// Whoever simulates schedules closures; Step() runs the earliest one and moves the clock to it.
// Events of the same instant run in an order drawn from the seed, so that nothing can lean on the
// order in which they were scheduled. The same seed and the same program give the same history,
// which HistoryHash() states in one number.
//
// Thread-safety: none. One simulation is one thread; it never reads a clock of the machine.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/random.h"

namespace mooncake::sim {

class Simulator {
 public:
  using Task = std::move_only_function<void()>;

  explicit Simulator(std::uint64_t seed);
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] Instant Now() const { return now_; }
  // Time since the simulation began, for histories and messages.
  [[nodiscard]] Duration Elapsed() const { return now_ - Begin(); }
  [[nodiscard]] Rng& rng() { return rng_; }

  // Runs `task` at `when`; a time that has passed means now.
  void At(Instant when, Task task);
  void After(Duration delay, Task task) { At(now_ + delay, std::move(task)); }

  // Runs the next event. False when there is none.
  bool Step();
  // Runs events until the clock would pass `end`, then moves the clock to it.
  void RunUntil(Instant end);
  void RunFor(Duration time) { RunUntil(now_ + time); }

  [[nodiscard]] std::size_t pending() const { return queue_.size(); }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

  // Writes a line, with the time before it, into the history. The newest kHistoryLines are kept,
  // the hash covers all.
  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) {
    NoteText(fmt::vformat(format, fmt::make_format_args(args...)));
  }
  void NoteText(std::string_view text);

  // The newest lines, oldest first, one a line, each ending in a newline.
  [[nodiscard]] std::string History(std::size_t newest_lines = kHistoryLines) const;
  [[nodiscard]] std::uint64_t HistoryHash() const { return history_hash_; }
  // Also writes every line to stderr from now on: for replaying one seed.
  void Echo(bool on) { echo_ = on; }

  static constexpr std::size_t kHistoryLines = 20'000;

 private:
  struct Event {
    Instant when;
    std::uint32_t draw;  // Orders events of one instant.
    std::uint64_t sequence;
    Task task;
  };
  // Makes a min-heap of std::push_heap, which builds max-heaps.
  struct Later {
    bool operator()(const Event& a, const Event& b) const;
  };

  // Not zero: a real monotonic clock is not at zero either, and core code may treat zero as
  // "never".
  static constexpr Instant Begin() { return Instant(Duration(1'000'000'000'000)); }

  const std::uint64_t seed_;
  Rng rng_;
  Instant now_ = Begin();
  std::vector<Event> queue_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t steps_ = 0;
  std::deque<std::string> history_;
  std::uint64_t history_hash_ = 14695981039346656037ULL;  // FNV-1a, 64 bits.
  bool echo_ = false;
};

}  // namespace mooncake::sim
