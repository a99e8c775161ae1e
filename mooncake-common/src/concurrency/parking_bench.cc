// What waiting costs. Good: a notification that nobody waits for is one atomic exchange, below 20
// ns; a round trip between two spinning threads is a few cache misses, below 1 us when both have a
// core; one that sleeps is two wake-ups, 60 to 140 us on virtual machines. On one core, or a busy
// machine, spinning must stay near the price of two thread switches (5 us): a spinner that never
// yields keeps its partner off the core for whole time slices (240 us a round, measured).
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/concurrency/thread.h"

namespace mooncake {
namespace {

void NotifyNobody(benchmark::State& state) {
  Event event;
  for (auto _ : state) {
    event.Notify();
    event.Reset();
  }
}
BENCHMARK(NotifyNobody);

void RoundTrip(benchmark::State& state) {
  const Duration spin = std::chrono::microseconds(state.range(0));
  Event ping;
  Event pong;
  std::atomic<bool> stop = false;
  auto other = Thread::Start("pong", [&] {
    while (ping.Wait(Instant::max(), spin) && !stop) {
      ping.Reset();
      pong.Notify();
    }
  });
  MC_CHECK(other.has_value());
  for (auto _ : state) {
    ping.Notify();
    MC_CHECK(pong.Wait(Instant::max(), spin));
    pong.Reset();
  }
  stop = true;
  ping.Notify();
}
BENCHMARK(RoundTrip)->ArgName("spin_us")->Arg(0)->Arg(50)->UseRealTime();

}  // namespace
}  // namespace mooncake
