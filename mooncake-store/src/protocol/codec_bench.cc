// Encoding and decoding a batch lookup of 1024 keys of 42 bytes. Good: about the time of copying
// the keys (some 3 us each way); the master must not spend more than a tenth of a microsecond a key
// in all.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "mooncake-store/src/protocol/codec.h"

namespace mooncake::store {
namespace {

struct Batch {
  std::vector<std::string> texts;
  BatchExistRequest request;
  Batch() {
    for (int i = 0; i < 1024; ++i) {
      texts.push_back("model/0123456789abcdef0123456789abc/" + std::to_string(100000 + i));
    }
    request.keys.assign(texts.begin(), texts.end());
  }
};

void BM_EncodeExistRequest(benchmark::State& state) {
  const Batch batch;
  Codec codec;
  for (auto _ : state) {
    benchmark::DoNotOptimize(codec.Encode(batch.request).data());
  }
  state.SetItemsProcessed(state.iterations() * 1024);
}
BENCHMARK(BM_EncodeExistRequest);

void BM_DecodeExistRequest(benchmark::State& state) {
  const Batch batch;
  Codec sender;
  Codec receiver;
  const auto body = sender.Encode(batch.request);
  BatchExistRequest request;
  for (auto _ : state) {
    benchmark::DoNotOptimize(receiver.Decode(body, request).has_value());
  }
  state.SetItemsProcessed(state.iterations() * 1024);
}
BENCHMARK(BM_DecodeExistRequest);

void BM_GetReplicasReplyBothWays(benchmark::State& state) {
  BatchGetReplicasReply reply;
  for (std::uint32_t i = 0; i < 128; ++i) {
    reply.table.extents.push_back(
        {.segment = 1, .incarnation = 2, .offset_bytes = i * 4096ULL, .length_bytes = 4096});
    reply.table.replicas.push_back({.first_extent = i, .extent_count = 1});
    reply.objects.push_back(
        {.size_bytes = 4096, .version = i + 1, .replicas = {.first = i, .count = 1}});
  }
  Codec sender;
  Codec receiver;
  BatchGetReplicasReply got;
  for (auto _ : state) {
    benchmark::DoNotOptimize(receiver.Decode(sender.Encode(reply), got).has_value());
  }
  state.SetItemsProcessed(state.iterations() * 128);
}
BENCHMARK(BM_GetReplicasReplyBothWays);

}  // namespace
}  // namespace mooncake::store
