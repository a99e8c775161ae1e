// What eviction adds to a lookup and to a put. A good number for a lookup's share is 50 ns a key,
// half of what the whole lookup may cost; for a put with its victim, 300 ns.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/eviction/hub.h"
#include "mooncake-store/src/master/eviction/lru.h"

namespace mooncake::store {
namespace {

constexpr std::size_t kBatch = 1024;

class Fixture {
 public:
  explicit Fixture(Slot objects) : hub_(std::make_unique<LruPolicy>()) {
    mask_.Add(0);
    for (Slot slot = 0; slot < objects; ++slot) {
      Put(slot);
    }
  }
  void Put(Slot slot) {
    const ChainKey key{slot, slot};
    const EvictionHub::Put put{.key = key, .placement_count = 1};
    const Placement placement{0, 64};
    hub_.OnPuts(std::span(&put, 1), std::span(&placement, 1));
    hub_.OnReady(std::span(&key, 1));
    hub_.DrainIfGrown();
  }
  void LookUp(const std::vector<ChainKey>& keys) {
    hub_.OnChain({.keys = keys}, Instant(Duration(0)));
    hub_.DrainIfGrown();
  }
  Slot Evict() {
    victims_.clear();
    (void)hub_.Pick({.segments = &mask_, .bytes = 64 * 64}, Instant(Duration(1)), victims_);
    const ChainKey key{victims_.at(0), victims_.at(0)};
    hub_.OnGone(std::span(&key, 1));
    return key.slot;
  }

 private:
  EvictionHub hub_;
  SegmentMask mask_;
  std::vector<Slot> victims_;
};

// Keys of one chain, as they were put; or anywhere.
void LookUp(benchmark::State& state) {
  const auto objects = static_cast<Slot>(state.range(0));
  const bool scattered = state.range(1) != 0;
  Fixture fixture(objects);
  Rng rng(1);
  std::vector<ChainKey> keys(kBatch);
  for (auto _ : state) {
    const auto start = static_cast<Slot>(rng.Uniform(objects - kBatch + 1));
    for (std::size_t index = 0; index < kBatch; ++index) {
      const Slot slot =
          scattered ? static_cast<Slot>(rng.Uniform(objects)) : start + static_cast<Slot>(index);
      keys[index] = {slot, slot};
    }
    fixture.LookUp(keys);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK(LookUp)->Args({1024, 0})->Args({1000000, 0})->Args({1000000, 1});

void PutAndEvict(benchmark::State& state) {
  Fixture fixture(static_cast<Slot>(state.range(0)));
  for (auto _ : state) {
    fixture.Put(fixture.Evict());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(PutAndEvict)->Arg(1000)->Arg(1000000);

}  // namespace
}  // namespace mooncake::store
