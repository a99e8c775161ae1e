#include "mooncake-common/src/metrics/metric.h"

#include <algorithm>
#include <numeric>

#include "mooncake-common/src/base/result.h"

namespace mooncake {
namespace {

constexpr std::size_t kCellsPerCacheLine = 64 / sizeof(std::uint64_t);

}  // namespace

std::size_t MetricShard() {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t shard =
      threads.fetch_add(1, std::memory_order_relaxed) % kMetricShards;
  return shard;
}

std::uint64_t Counter::Value() const {
  std::uint64_t sum = 0;
  for (const Shard& shard : shards_) {
    sum += shard.value.load(std::memory_order_relaxed);
  }
  return sum;
}

Histogram::Histogram(std::span<const std::uint64_t> bounds)
    : bounds_(bounds.begin(), bounds.end()),
      stride_((bounds.size() + 2 + kCellsPerCacheLine - 1) / kCellsPerCacheLine *
              kCellsPerCacheLine),
      cells_(std::make_unique<std::atomic<std::uint64_t>[]>(stride_ * kMetricShards)) {
  MC_CHECK(std::ranges::adjacent_find(bounds_, std::ranges::greater_equal()) == bounds_.end());
}

void Histogram::Observe(std::uint64_t value) {
  const auto bucket =
      static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin());
  std::atomic<std::uint64_t>* const shard = &cells_[MetricShard() * stride_];
  shard[bucket].fetch_add(1, std::memory_order_relaxed);
  shard[bounds_.size() + 1].fetch_add(value, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::Read() const {
  Snapshot snapshot{.bounds = bounds_, .counts = std::vector<std::uint64_t>(bounds_.size() + 1)};
  for (std::size_t shard = 0; shard < kMetricShards; ++shard) {
    const std::atomic<std::uint64_t>* const cells = &cells_[shard * stride_];
    for (std::size_t bucket = 0; bucket <= bounds_.size(); ++bucket) {
      snapshot.counts[bucket] += cells[bucket].load(std::memory_order_relaxed);
    }
    snapshot.sum += cells[bounds_.size() + 1].load(std::memory_order_relaxed);
  }
  snapshot.count =
      std::accumulate(snapshot.counts.begin(), snapshot.counts.end(), std::uint64_t{0});
  return snapshot;
}

}  // namespace mooncake
