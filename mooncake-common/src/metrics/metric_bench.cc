// What counting costs on a hot path. Good: a few ns, and no more with several threads than with one
// (a counter that all threads share takes 20 to 50 ns then).
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>

#include "mooncake-common/src/metrics/metric.h"
#include "mooncake-common/src/metrics/registry.h"

namespace mooncake {
namespace {

void CounterAdd(benchmark::State& state) {
  static Counter counter;
  for (auto _ : state) {
    counter.Add();
  }
}
BENCHMARK(CounterAdd)->Threads(1)->Threads(2);

void HistogramObserve(benchmark::State& state) {
  static Histogram histogram(std::array<std::uint64_t, 6>{1, 10, 100, 1000, 10'000, 100'000});
  std::uint64_t value = 1;
  for (auto _ : state) {
    histogram.Observe(value);
    value = value * 5 % 1'000'003;
  }
}
BENCHMARK(HistogramObserve)->Threads(1)->Threads(2);

void ExposeMaster(benchmark::State& state) {
  Registry registry;
  for (int i = 0; i < 136; ++i) {  // As many families as a master has.
    registry.AddCounter("family_" + std::to_string(i), "One of many").Add(i);
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(registry.Expose());
  }
}
BENCHMARK(ExposeMaster);

}  // namespace
}  // namespace mooncake
