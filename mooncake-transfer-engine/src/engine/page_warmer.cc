#include "mooncake-transfer-engine/src/engine/page_warmer.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "mooncake-common/src/base/log.h"

namespace mooncake::transfer {
namespace {

constexpr double kKeepAvailable = 0.25;
constexpr int kStepsBetweenLooks = 64;
constexpr int kNice = 10;  // A tenth of the share of a thread of normal priority.
constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(640);
constexpr int kQuietSteps = 64;  // More than fit into one slice of the scheduler.

std::string TextOf(const char* path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::optional<std::uint64_t> LeadingNumber(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc{} ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> Field(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  return at == std::string_view::npos ? std::nullopt : LeadingNumber(text.substr(at + name.size()));
}

}  // namespace

Duration BackgroundPace::PauseAfter(Duration took, Duration ran) {
  if (took > 2 * ran + std::chrono::milliseconds(1)) {  // Most of it went to others.
    quiet_steps_ = 0;
    pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
    return pause_;
  }
  if (++quiet_steps_ >= kQuietSteps) {
    pause_ = {};
  }
  return {};
}

double AvailableShareOfMachine(std::string_view meminfo) {
  const auto total = Field(meminfo, "MemTotal:");
  const auto available = Field(meminfo, "MemAvailable:");
  return total && available && *total > 0
             ? static_cast<double>(*available) / static_cast<double>(*total)
             : 1.0;
}

double AvailableShareOfGroup(std::string_view max, std::string_view current,
                             std::string_view stat) {
  const auto limit = LeadingNumber(max);  // "max" when there is none.
  const auto used = LeadingNumber(current);
  if (!limit || !used || *limit == 0) {
    return 1.0;
  }
  const std::uint64_t droppable = std::min(*used, Field(stat, "inactive_file").value_or(0));
  return std::max(0.0, 1.0 - static_cast<double>(*used - droppable) / static_cast<double>(*limit));
}

PageWarmer::Machine PageWarmer::ThisMachine() {
  return {.populate =
              [](std::byte* address, std::uint64_t length_bytes) {
                return ::madvise(address, length_bytes, MADV_POPULATE_WRITE) == 0;
              },
          .available_share =
              [] {
                return std::min(AvailableShareOfMachine(TextOf("/proc/meminfo")),
                                AvailableShareOfGroup(TextOf("/sys/fs/cgroup/memory.max"),
                                                      TextOf("/sys/fs/cgroup/memory.current"),
                                                      TextOf("/sys/fs/cgroup/memory.stat")));
              },
          .ran =
              [] {
                timespec time{};
                ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
                return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
              }};
}

void PageWarmer::Add(std::byte* address, std::uint64_t length_bytes) {
  Thread ended;  // Joined without the lock.
  const MutexLock lock(mutex_);
  if (stopping_) {
    return;
  }
  ranges_.push_back({.address = address, .length_bytes = length_bytes});
  if (running_) {
    return;
  }
  auto thread = Thread::Start("mc-warm-pages", [this] { Run(); });
  if (!thread) {
    MC_LOG_WARNING("warm the pages of new memory: {}; the first writes to it are slower",
                   thread.error().ToString());
    ranges_.clear();
    return;
  }
  running_ = true;
  ended = std::exchange(thread_, std::move(thread).value());
}

void PageWarmer::Remove(const std::byte* address) {
  const MutexLock lock(mutex_);
  std::erase_if(ranges_, [&](const Range& range) { return range.address == address; });
  while (busy_ == address) {
    changed_.Wait(mutex_);
  }
}

void PageWarmer::Stop() {
  Thread thread;
  const MutexLock lock(mutex_);
  stopping_ = true;
  ranges_.clear();
  changed_.NotifyAll();
  while (running_) {
    changed_.Wait(mutex_);
  }
  thread = std::move(thread_);
}

void PageWarmer::Drain() {
  const MutexLock lock(mutex_);
  while (running_) {
    changed_.Wait(mutex_);
  }
}

void PageWarmer::Rest(Instant until) {
  while (!ranges_.empty() && changed_.WaitUntil(mutex_, until)) {
  }
}

void PageWarmer::Run() {
  // Of this thread alone, on Linux.
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNice));
  int steps = 0;
  BackgroundPace pace;
  mutex_.lock();
  while (!ranges_.empty()) {
    const Range range = ranges_.front();
    busy_ = range.address;
    mutex_.unlock();
    const Instant begun = SteadyClock::Get().Now();
    const Duration had_run = machine_.ran();
    const bool enough =
        steps++ % kStepsBetweenLooks != 0 || machine_.available_share() > kKeepAvailable;
    const std::uint64_t step = std::min(kStepBytes, range.length_bytes - range.done_bytes);
    const bool made = enough && machine_.populate(range.address + range.done_bytes, step);
    const Duration pause =
        pace.PauseAfter(SteadyClock::Get().Now() - begun, machine_.ran() - had_run);
    mutex_.lock();
    busy_ = nullptr;
    changed_.NotifyAll();
    if (ranges_.empty() || ranges_.front().address != range.address) {
      continue;  // Removed meanwhile.
    }
    ranges_.front().done_bytes += step;
    if (!made || ranges_.front().done_bytes == range.length_bytes) {
      ranges_.pop_front();
    }
    if (!enough) {
      ranges_.clear();
    }
    if (pause > Duration::zero()) {
      Rest(SteadyClock::Get().Now() + pause);
    }
  }
  running_ = false;
  changed_.NotifyAll();
  mutex_.unlock();
}

}  // namespace mooncake::transfer
