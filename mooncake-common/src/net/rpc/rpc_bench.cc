// Round trips of the RPC beside a raw socket whose two ends spin. Good: a short call within twice
// the raw round trip, since both find somebody awake; 12 us at most on a machine where the raw one
// takes 6.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/server.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kEcho = 1;

struct Pair {
  RpcServer server{{.host = "127.0.0.1"}};
  Reactor reactor;
  std::unique_ptr<RpcClient> client;

  Pair() {
    server.Register(kEcho, [](std::span<const std::byte> body, ReplyWriter& reply,
                              const PeerInfo&) { reply.Append(body); });
    MC_CHECK(server.Start().has_value());
    MC_CHECK(reactor.Start().has_value());
    client = *RpcClient::Create(reactor, {.host = "127.0.0.1", .port = server.port()});
  }
};

Pair& Shared() {
  static Pair pair;
  return pair;
}

void Report(benchmark::State& state, std::vector<double>& micros) {
  if (micros.empty()) {
    return;
  }
  std::ranges::sort(micros);
  state.counters["p50_us"] = micros[micros.size() / 2];
  state.counters["p99_us"] = micros[micros.size() * 99 / 100];
}

void BM_Echo(benchmark::State& state) {
  Pair& pair = Shared();
  const std::vector<std::byte> body(static_cast<std::size_t>(state.range(0)));
  RpcReply reply;
  std::vector<double> micros;
  for (auto _ : state) {
    const Instant start = SteadyClock::Get().Now();
    MC_CHECK(pair.client->Call(kEcho, body, start + std::chrono::seconds(30), reply).has_value());
    micros.push_back(
        std::chrono::duration<double, std::micro>(SteadyClock::Get().Now() - start).count());
  }
  Report(state, micros);
}
BENCHMARK(BM_Echo)->Arg(64)->Arg(65536)->UseRealTime();
BENCHMARK(BM_Echo)->Arg(64)->Threads(8)->UseRealTime();

void BM_RawSpinningSockets(benchmark::State& state) {
  const auto listener = SocketListen("127.0.0.1", 0);
  auto client = SocketConnect(*ResolveAddress("127.0.0.1", *LocalPort(listener->get())));
  Result<UniqueFd> server = UniqueFd();
  while (!*server) {
    server = SocketAccept(listener->get(), nullptr);
  }
  std::atomic<bool> stop{false};
  std::jthread echo([&] {
    std::array<std::byte, 64> bytes{};
    while (!stop.load(std::memory_order_relaxed)) {
      if (SocketRead(server->get(), std::span<std::byte>(bytes)).kind == IoOutcome::Kind::kMoved) {
        static_cast<void>(SocketWrite(server->get(), std::span<const std::byte>(bytes)));
      }
    }
  });
  std::array<std::byte, 64> bytes{};
  std::vector<double> micros;
  for (auto _ : state) {
    const Instant start = SteadyClock::Get().Now();
    static_cast<void>(SocketWrite(client->get(), std::span<const std::byte>(bytes)));
    while (SocketRead(client->get(), std::span<std::byte>(bytes)).kind != IoOutcome::Kind::kMoved) {
    }
    micros.push_back(
        std::chrono::duration<double, std::micro>(SteadyClock::Get().Now() - start).count());
  }
  stop = true;
  Report(state, micros);
}
BENCHMARK(BM_RawSpinningSockets)->UseRealTime();

}  // namespace
}  // namespace mooncake::rpc
