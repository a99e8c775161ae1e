// What eviction adds to a lookup and to a put. A good number for a lookup's share is 50 ns a key,
// half of what the whole lookup may cost; for a put with its victim, 300 ns.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/eviction/hub.h"
#include "mooncake-store/src/master/eviction/policies.h"

namespace mooncake::store {
namespace {

constexpr std::size_t kBatch = 1024;

ChainKey KeyOf(Slot slot) { return {.hash = slot * 0x9e3779b97f4a7c15, .slot = slot}; }

class Fixture {
 public:
  Fixture(EvictionPolicyKind policy, Slot objects) : hub_(MakePolicy(policy, 1)) {
    mask_.Add(0);
    for (Slot slot = 0; slot < objects; ++slot) {
      Put(slot);
    }
  }
  void Put(Slot slot) {
    const ChainKey key = KeyOf(slot);
    const EvictionHub::Put put{.key = key, .placement_count = 1};
    const Placement placement{0, 64};
    hub_.OnPuts(std::span(&put, 1), std::span(&placement, 1));
    hub_.OnReady(std::span(&key, 1));
    hub_.DrainIfGrown();
  }
  void LookUp(const std::vector<ChainKey>& keys) {
    hub_.OnChain({.total = kBatch, .keys = keys}, Instant(Duration(0)));
    hub_.DrainIfGrown();
  }
  Slot Evict() {
    victims_.clear();
    (void)hub_.Pick({.segments = &mask_, .bytes = 64 * 64}, Instant(Duration(1)), victims_);
    const ChainKey key = KeyOf(victims_.at(0));
    hub_.OnGone(std::span(&key, 1));
    return key.slot;
  }

 private:
  EvictionHub hub_;
  SegmentMask mask_;
  std::vector<Slot> victims_;
};

// Keys of one chain, as they were put; or anywhere.
void LookUp(benchmark::State& state, EvictionPolicyKind policy) {
  const auto objects = static_cast<Slot>(state.range(0));
  const bool scattered = state.range(1) != 0;
  Fixture fixture(policy, objects);
  Rng rng(1);
  std::vector<ChainKey> keys(kBatch);
  for (auto _ : state) {
    const auto start = static_cast<Slot>(rng.Uniform(objects - kBatch + 1));
    for (std::size_t index = 0; index < kBatch; ++index) {
      const Slot slot =
          scattered ? static_cast<Slot>(rng.Uniform(objects)) : start + static_cast<Slot>(index);
      keys[index] = KeyOf(slot);
    }
    fixture.LookUp(keys);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK_CAPTURE(LookUp, lru, EvictionPolicyKind::kLru)
    ->Args({1024, 0})
    ->Args({1000000, 0})
    ->Args({1000000, 1});
BENCHMARK_CAPTURE(LookUp, hdi, EvictionPolicyKind::kHdi)
    ->Args({1024, 0})
    ->Args({1000000, 0})
    ->Args({1000000, 1});

void PutAndEvict(benchmark::State& state, EvictionPolicyKind policy) {
  Fixture fixture(policy, static_cast<Slot>(state.range(0)));
  for (auto _ : state) {
    fixture.Put(fixture.Evict());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(PutAndEvict, lru, EvictionPolicyKind::kLru)->Arg(1000)->Arg(1000000);
BENCHMARK_CAPTURE(PutAndEvict, hdi, EvictionPolicyKind::kHdi)->Arg(1000)->Arg(1000000);

}  // namespace
}  // namespace mooncake::store
