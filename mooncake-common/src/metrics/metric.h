// What is counted: counters, gauges and histograms that hot paths can afford.
//
// Thread-safety: any thread; all updates are relaxed atomics, so a reader may see one update of a
// moment without another.
// Ownership:     a Registry makes them and keeps them until it goes; callers keep references.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace mooncake {

// Which of the copies of a counter this thread adds to. Threads get theirs in turn.
inline constexpr std::size_t kMetricShards = 8;
[[nodiscard]] std::size_t MetricShard();

// Only ever grows. Each thread adds to one of a few copies, on cache lines of their own, so that
// threads do not fight for one.
class Counter {
 public:
  Counter() = default;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void Add(std::uint64_t count = 1) {
    shards_[MetricShard()].value.fetch_add(count, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t Value() const;

 private:
  struct alignas(64) Shard {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Shard, kMetricShards> shards_;
};

// Goes up and down.
class Gauge {
 public:
  Gauge() = default;
  Gauge(const Gauge&) = delete;
  Gauge& operator=(const Gauge&) = delete;

  void Set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Add(std::int64_t change) { value_.fetch_add(change, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t Value() const { return value_.load(std::memory_order_relaxed); }

 private:
  alignas(64) std::atomic<std::int64_t> value_{0};
};

// Counts whole numbers (bytes, microseconds) by the bucket they fall into.
class Histogram {
 public:
  // `bounds`: upper ends of the buckets, each included in its own, rising; one more bucket takes
  // what lies above the last.
  explicit Histogram(std::span<const std::uint64_t> bounds);
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  void Observe(std::uint64_t value);

  struct Snapshot {
    std::vector<std::uint64_t> bounds;
    std::vector<std::uint64_t> counts;  // One more than bounds; not cumulated.
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
  };
  [[nodiscard]] Snapshot Read() const;

 private:
  const std::vector<std::uint64_t> bounds_;
  const std::size_t stride_;  // Cells of one shard, whole cache lines: buckets, then the sum.
  std::unique_ptr<std::atomic<std::uint64_t>[]> cells_;
};

}  // namespace mooncake
