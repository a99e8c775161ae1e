// How long others wait while all objects are removed by one call, on a master with a single network
// thread. A good number: the longest wait is that of one step and of whoever else wants the
// processor, a few milliseconds on a busy machine, whatever the number of objects.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-store/src/master/eviction/lru.h"
#include "mooncake-store/src/protocol/codec.h"
#include "mooncake-store/src/server/metrics.h"
#include "mooncake-store/src/server/service.h"

namespace mooncake::store {
namespace {

constexpr std::size_t kBatch = 8192;
constexpr std::size_t kObjectBytes = 64;

void Fill(Master& master, std::size_t objects) {
  const Caller caller{.client = {1, 1}};
  const Instant now = SteadyClock::Get().Now();
  MountSegmentReply mounted;
  master.Handle(
      MountSegmentRequest{
          .caller = caller,
          .segment = {.id = {3, 4}, .name = "host:1", .size_bytes = objects * kObjectBytes}},
      now, mounted);
  BatchPutStartReply started;
  BatchPutEndReply ended;
  std::vector<std::string> names(kBatch);
  for (std::size_t first = 0; first < objects; first += kBatch) {
    for (std::size_t number = 0; number < kBatch; ++number) {
      names[number] = fmt::format("model-7b/layers/kv/block/{:016x}@", first + number);
    }
    const std::vector<std::string_view> keys(names.begin(), names.end());
    master.Handle(
        BatchPutStartRequest{
            .caller = caller, .keys = keys, .sizes_bytes = std::vector(kBatch, kObjectBytes)},
        now, started);
    master.Handle(
        BatchPutEndRequest{
            .caller = caller, .keys = keys, .endings = std::vector<PutEnding>(kBatch)},
        now, ended);
  }
}

// Removes everything while another connection asks for a key as fast as it can.
void AskWhileAllIsRemoved(benchmark::State& state) {
  const auto objects = static_cast<std::size_t>(state.range(0));
  const Clock& clock = SteadyClock::Get();
  Duration longest{};
  std::uint64_t asked = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Master master({}, std::make_unique<LruPolicy>());
    Fill(master, objects);
    rpc::RpcServer server({.host = "127.0.0.1", .threads = 1});
    MasterMetrics metrics(master, server, clock);
    MasterService service(master, metrics, clock);
    service.RegisterWith(server);
    Reactor reactor;
    if (!server.Start() || !reactor.Start()) {
      state.SkipWithError("cannot start");
      break;
    }
    const rpc::RpcClient::Options options{.host = "127.0.0.1", .port = server.port()};
    const auto remover = rpc::RpcClient::Create(reactor, options).value();
    const auto asker = rpc::RpcClient::Create(reactor, options).value();
    Codec codec;
    const auto question =
        codec.Encode(BatchExistRequest{.caller = {.client = {2, 2}}, .keys = {"none"}});
    const std::vector<std::byte> exist(question.begin(), question.end());
    const auto ask = [&] {
      rpc::RpcReply reply;
      const Instant before = clock.Now();
      const auto called = asker->Call(static_cast<std::uint16_t>(Method::kBatchExist), exist,
                                      before + std::chrono::seconds(60), reply);
      if (!called) {
        state.SkipWithError(called.error().ToString().c_str());
      }
      return clock.Now() - before;
    };
    (void)ask();  // Dials.
    state.ResumeTiming();

    std::atomic<bool> removed{false};
    remover->Start(static_cast<std::uint16_t>(Method::kRemoveAll), codec.Encode(RemoveAllRequest{}),
                   clock.Now() + std::chrono::seconds(60),
                   [&](Result<std::span<const std::byte>>) { removed = true; });
    while (!removed) {
      longest = std::max(longest, ask());
      ++asked;
    }
    state.PauseTiming();
    reactor.Stop();
    server.Stop();
    state.ResumeTiming();
  }
  state.counters["longest_wait_ms"] = std::chrono::duration<double, std::milli>(longest).count();
  state.counters["asked"] = static_cast<double>(asked);
}
BENCHMARK(AskWhileAllIsRemoved)
    ->Arg(kBatch * 4)
    ->Arg(kBatch * 122)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mooncake::store
