// What a range costs. A good number is 100 ns for an allocation and its release, since a put pays
// it once; ten times that at a million holes would mean that something is searched.
#include <benchmark/benchmark.h>

#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/space.h"

namespace mooncake::store {
namespace {

void ReplaceOnePage(benchmark::State& state) {
  SpaceAllocator space(static_cast<std::uint64_t>(state.range(0)) * 4096);
  std::vector<SpaceRange> held;
  while (const auto range = space.Allocate(4096)) {
    held.push_back(*range);
  }
  Rng rng(1);
  for (auto _ : state) {
    SpaceRange& range = held[rng.Uniform(held.size())];
    space.Free(std::span(&range, 1));
    range = *space.Allocate(4096);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ReplaceOnePage)->Arg(1000)->Arg(100000);

// Half of the segment free in single pages, and objects of 1 to 8 pages come and go.
void ReplaceMixedSizesAmongHoles(benchmark::State& state) {
  SpaceAllocator space(static_cast<std::uint64_t>(state.range(0)) * 4096);
  Rng rng(1);
  std::vector<SpaceRange> held;
  while (space.free_bytes() * 2 > space.capacity_bytes()) {
    held.push_back(*space.Allocate(rng.Between(1, 8) * 4096));
  }
  std::uint64_t failed = 0;
  for (auto _ : state) {
    const std::size_t at = rng.Uniform(held.size());
    space.Free(std::span(&held[at], 1));
    const auto range = space.Allocate(rng.Between(1, 8) * 4096);
    if (range) {
      held[at] = *range;
    } else {
      ++failed;
      held[at] = held.back();
      held.pop_back();
    }
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["failed"] = static_cast<double>(failed);
}
BENCHMARK(ReplaceMixedSizesAmongHoles)->Arg(100000);

}  // namespace
}  // namespace mooncake::store
