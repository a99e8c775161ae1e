// What a key costs the master. Good numbers: 100 ns for a lookup with its lease, so that one core
// answers 10 M keys a second; 1 us for a put, start and end; 240 bytes for an object with a 42-byte
// key, all in: that is what a million objects in 240 MB means.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "mooncake-store/src/master/eviction/policies.h"
#include "mooncake-store/src/master/master.h"

namespace mooncake::store {
namespace {

constexpr std::size_t kBatch = 1024;

std::vector<std::string> MakeKeys(std::size_t count) {
  std::vector<std::string> keys;
  keys.reserve(count);
  for (std::size_t number = 0; number < count; ++number) {
    keys.push_back(fmt::format("model-7b/layers/kv/block/{:016x}@", number));
  }
  return keys;
}

std::uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size_pages = 0;
  std::uint64_t resident_pages = 0;
  statm >> size_pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

class Fixture {
 public:
  explicit Fixture(std::uint64_t segment_bytes,
                   EvictionPolicyKind policy = EvictionPolicyKind::kHdi)
      : master_({}, MakePolicy(policy, 1)), client_{1, 2} {
    MountSegmentReply mounted;
    master_.Handle(
        MountSegmentRequest{
            .caller = {.client = client_},
            .segment = {.id = {3, 4}, .name = "host:1", .size_bytes = segment_bytes}},
        now_, mounted);
    start_.caller.client = end_.caller.client = exist_.caller.client = client_;
  }

  // Keys [from, from + kBatch), each 64 bytes.
  void Put(const std::vector<std::string>& keys, std::size_t from, std::uint64_t size) {
    start_.chain.chain_id = ++chain_;
    start_.keys.assign(keys.begin() + static_cast<std::ptrdiff_t>(from),
                       keys.begin() + static_cast<std::ptrdiff_t>(from + kBatch));
    start_.sizes_bytes.assign(kBatch, size);
    now_ += Duration(1000000);
    master_.Handle(start_, now_, started_);
    end_.keys = start_.keys;
    end_.endings.assign(kBatch, {});
    for (std::size_t index = 0; index < kBatch; ++index) {
      end_.endings[index].version = started_.results[index].version;
    }
    master_.Handle(end_, now_, ended_);
  }

  std::size_t Exist(const std::vector<std::string>& keys, std::size_t from) {
    exist_.chain.chain_id = ++chain_;
    exist_.keys.assign(keys.begin() + static_cast<std::ptrdiff_t>(from),
                       keys.begin() + static_cast<std::ptrdiff_t>(from + kBatch));
    now_ += Duration(100000);
    master_.Handle(exist_, now_, exists_);
    return static_cast<std::size_t>(std::count(exists_.exists.begin(), exists_.exists.end(), 1));
  }

  std::uint64_t RemoveAll() {
    ObjectSweep sweep;
    (void)Master::Begin(RemoveAllRequest{.force = true}, sweep);
    while (!master_.StepRemove(sweep, now_)) {
    }
    return sweep.removed;
  }

  Master& master() { return master_; }

 private:
  Master master_;
  Uuid client_;
  Instant now_{};
  std::uint64_t chain_ = 0;
  BatchPutStartRequest start_;
  BatchPutStartReply started_;
  BatchPutEndRequest end_;
  BatchPutEndReply ended_;
  BatchExistRequest exist_;
  BatchExistReply exists_;
};

void BatchExist(benchmark::State& state, EvictionPolicyKind policy) {
  const auto objects = static_cast<std::size_t>(state.range(0));
  const std::vector<std::string> keys = MakeKeys(objects);
  Fixture fixture(objects * 64, policy);
  for (std::size_t from = 0; from < objects; from += kBatch) {
    fixture.Put(keys, from, 64);
  }
  std::size_t from = 0;
  std::size_t found = 0;
  for (auto _ : state) {
    found += fixture.Exist(keys, from);
    from = (from + kBatch * 37) % objects;
  }
  if (found != static_cast<std::size_t>(state.iterations()) * kBatch) {
    state.SkipWithError("keys were missing");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK_CAPTURE(BatchExist, lru, EvictionPolicyKind::kLru)->Arg(kBatch)->Arg(kBatch * 1024);
BENCHMARK_CAPTURE(BatchExist, hdi, EvictionPolicyKind::kHdi)->Arg(kBatch)->Arg(kBatch * 1024);

// One key, while many clients report many segments that they cannot read. The last number: do
// owners say nothing, too?
void ExistWhileSegmentsAreReported(benchmark::State& state) {
  constexpr std::uint64_t kSegments = 1024;
  Master master({}, MakePolicy(EvictionPolicyKind::kHdi, 1));
  Instant now{};
  std::vector<SegmentIdentity> segments;
  for (std::uint64_t number = 0; number < kSegments; ++number) {
    MountSegmentReply mounted;
    master.Handle(
        MountSegmentRequest{
            .caller = {.client = {number, 2}},
            .segment = {.id = {number, 1}, .name = std::to_string(number), .size_bytes = 4096}},
        now, mounted);
    segments.push_back(mounted.identity);
  }
  if (state.range(1) != 0) {
    now += SegmentHealth::kOwnerSilent;
  }
  segments.resize(kSegments / 2);
  for (std::int64_t reporter = 0; reporter < state.range(0); ++reporter) {
    ReportFailedReadsReply reply;
    master.Handle(
        ReportFailedReadsRequest{.caller = {.client = {static_cast<std::uint64_t>(reporter), 3}},
                                 .segments = segments},
        now, reply);
  }
  const BatchExistRequest request{.caller = {.client = {7, 7}}, .keys = {"key"}};
  BatchExistReply reply;
  for (auto _ : state) {
    master.Handle(request, now, reply);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ExistWhileSegmentsAreReported)->Args({0, 0})->Args({1, 0})->Args({1, 1})->Args({64, 0});

// The store is full all the time: each put evicts one object.
void PutStartAndEndWhenFull(benchmark::State& state) {
  const std::vector<std::string> keys = MakeKeys(kBatch * 256);
  Fixture fixture(kBatch * 64 * 4096);
  std::size_t from = 0;
  for (auto _ : state) {
    fixture.Put(keys, from, 4096);
    from = (from + kBatch) % keys.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK(PutStartAndEndWhenFull);

void PutStartAndEndThenRemoveAll(benchmark::State& state) {
  const auto objects = static_cast<std::size_t>(state.range(0));
  const std::vector<std::string> keys = MakeKeys(objects);
  Fixture fixture(objects * 64);
  for (auto _ : state) {
    for (std::size_t from = 0; from < objects; from += kBatch) {
      fixture.Put(keys, from, 64);
    }
    state.PauseTiming();
    fixture.RemoveAll();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(PutStartAndEndThenRemoveAll)->Arg(kBatch * 64);

// One iteration: a million objects come and go, and the process tells what they took.
void MemoryOfAMillionObjects(benchmark::State& state) {
  const std::size_t objects = kBatch * 1024;
  const std::vector<std::string> keys = MakeKeys(objects);
  for (auto _ : state) {
    Fixture fixture(objects * 64);
    const std::uint64_t before = ResidentBytes();
    for (std::size_t from = 0; from < objects; from += kBatch) {
      fixture.Put(keys, from, 64);
    }
    const std::uint64_t full = ResidentBytes();
    const std::uint64_t removed = fixture.RemoveAll();
    const std::uint64_t after = ResidentBytes();
    if (removed != objects) {
      state.SkipWithError("objects were missing");
    }
    const auto growth = static_cast<double>(full - before);
    state.counters["key_bytes"] = static_cast<double>(keys[0].size());
    state.counters["bytes_per_object"] = growth / static_cast<double>(objects);
    state.counters["given_back_percent"] = 100 * static_cast<double>(full - after) / growth;
  }
}
BENCHMARK(MemoryOfAMillionObjects)->Iterations(1)->Unit(benchmark::kMillisecond);

// What others see of a removal of everything: the longest single step.
void RemoveAllStep(benchmark::State& state) {
  const std::size_t objects = kBatch * 256;
  const std::vector<std::string> keys = MakeKeys(objects);
  Fixture fixture(objects * 64);
  for (auto _ : state) {
    state.PauseTiming();
    for (std::size_t from = 0; from < objects; from += kBatch) {
      fixture.Put(keys, from, 64);
    }
    state.ResumeTiming();
    fixture.RemoveAll();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(objects));
}
BENCHMARK(RemoveAllStep)->Iterations(2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mooncake::store
