#include "mooncake-common/src/sim/simulator.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace mooncake::sim {

Simulator::Simulator(std::uint64_t seed) : seed_(seed), rng_(seed) {}

bool Simulator::Later::operator()(const Event& a, const Event& b) const {
  if (a.when != b.when) {
    return a.when > b.when;
  }
  if (a.draw != b.draw) {
    return a.draw > b.draw;
  }
  return a.sequence > b.sequence;
}

void Simulator::At(Instant when, Task task) {
  queue_.push_back(Event{.when = std::max(when, now_),
                         .draw = static_cast<std::uint32_t>(rng_.Next()),
                         .sequence = next_sequence_++,
                         .task = std::move(task)});
  std::ranges::push_heap(queue_, Later{});
}

bool Simulator::Step() {
  if (queue_.empty()) {
    return false;
  }
  std::ranges::pop_heap(queue_, Later{});
  Event event = std::move(queue_.back());
  queue_.pop_back();
  now_ = event.when;
  ++steps_;
  event.task();
  return true;
}

void Simulator::RunUntil(Instant end) {
  while (!queue_.empty() && queue_.front().when <= end) {
    Step();
  }
  now_ = std::max(now_, end);
}

void Simulator::NoteText(std::string_view text) {
  const double milliseconds = std::chrono::duration<double, std::milli>(Elapsed()).count();
  std::string line = fmt::format("{:12.3f} {}\n", milliseconds, text);
  for (const char c : line) {
    history_hash_ = (history_hash_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  if (echo_) {
    std::fputs(line.c_str(), stderr);
  }
  history_.push_back(std::move(line));
  if (history_.size() > kHistoryLines) {
    history_.pop_front();
  }
}

std::string Simulator::History(std::size_t newest_lines) const {
  std::string text;
  const std::size_t first = history_.size() - std::min(newest_lines, history_.size());
  for (std::size_t i = first; i < history_.size(); ++i) {
    text += history_[i];
  }
  return text;
}

}  // namespace mooncake::sim
