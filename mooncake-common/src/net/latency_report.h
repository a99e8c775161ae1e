// Percentiles of single round trips, for benchmarks: a mean over a shared machine says little.
//
// Thread-safety: none; each benchmark thread has its own.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "mooncake-common/src/base/clock.h"

namespace mooncake {

class LatencyReport {
 public:
  // Runs `round_trip` and keeps how long it took.
  template <typename F>
  void Time(F&& round_trip) {
    const Instant start = SteadyClock::Get().Now();
    round_trip();
    micros_.push_back(
        std::chrono::duration<double, std::micro>(SteadyClock::Get().Now() - start).count());
  }
  // As the counters p50_us and p99_us; averaged over the threads of a run.
  void Publish(benchmark::State& state) {
    if (micros_.empty()) {
      return;
    }
    std::ranges::sort(micros_);
    const auto average = benchmark::Counter::kAvgThreads;
    state.counters["p50_us"] = benchmark::Counter(micros_[micros_.size() / 2], average);
    state.counters["p99_us"] = benchmark::Counter(micros_[micros_.size() * 99 / 100], average);
  }

 private:
  std::vector<double> micros_;
};

}  // namespace mooncake
