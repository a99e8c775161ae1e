// Round trips of the RPC beside a raw socket whose two ends spin. Good: a short call within twice
// the raw round trip, since both find somebody awake; 12 us at most at the median on a machine
// where the raw one takes 6. Eight callers on one connection: more calls a second than one caller
// makes.
#include <benchmark/benchmark.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/latency_report.h"
#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kEcho = 1;
constexpr auto kHang = std::chrono::seconds(30);

void StartEcho(RpcServer& server) {
  server.Register(kEcho, [](std::span<const std::byte> body, ReplyWriter& reply, const PeerInfo&) {
    reply.Append(body);
  });
  MC_CHECK(server.Start().has_value());
}

// A server in a process of its own, until this one ends.
class ChildServer {
 public:
  ChildServer() {
    std::array<int, 2> ends{};
    MC_CHECK(pipe(ends.data()) == 0);
    pid_ = fork();
    MC_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      RpcServer server({.host = "127.0.0.1"});
      StartEcho(server);
      const std::uint16_t chosen = server.port();
      MC_CHECK(write(ends[1], &chosen, sizeof chosen) == sizeof chosen);
      for (;;) {
        pause();
      }
    }
    MC_CHECK(read(ends[0], &port, sizeof port) == sizeof port);
    close(ends[0]);
    close(ends[1]);
  }
  ~ChildServer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::uint16_t port = 0;

 private:
  pid_t pid_ = 0;
};

struct Client {
  explicit Client(std::uint16_t port) {
    MC_CHECK(reactor.Start().has_value());
    rpc = RpcClient::Create(reactor, {.host = "127.0.0.1", .port = port}).value();
  }
  Reactor reactor;
  std::unique_ptr<RpcClient> rpc;
};

struct Pair {
  Pair() {
    StartEcho(server);
    client = std::make_unique<Client>(server.port());
  }
  RpcServer server{{.host = "127.0.0.1"}};
  std::unique_ptr<Client> client;
};

void CallEcho(benchmark::State& state, RpcClient& client) {
  const std::vector<std::byte> body(static_cast<std::size_t>(state.range(0)));
  RpcReply reply;
  LatencyReport report;
  for (auto _ : state) {
    report.Time([&] {
      MC_CHECK(client.Call(kEcho, body, SteadyClock::Get().Now() + kHang, reply).has_value());
    });
  }
  report.Publish(state);
  state.SetItemsProcessed(state.iterations());
}

// The first to run: it forks, which a process with threads should not.
void BM_EchoOtherProcess(benchmark::State& state) {
  static ChildServer server;
  Client client(server.port);
  CallEcho(state, *client.rpc);
}
BENCHMARK(BM_EchoOtherProcess)->ArgName("bytes")->Arg(64)->Arg(65536)->UseRealTime();

void BM_Echo(benchmark::State& state) {
  static Pair pair;
  CallEcho(state, *pair.client->rpc);
}
BENCHMARK(BM_Echo)->ArgName("bytes")->Arg(64)->Arg(65536)->UseRealTime();
BENCHMARK(BM_Echo)->ArgName("bytes")->Arg(64)->Threads(8)->UseRealTime();

// What the socket itself takes. Now and then the ends let others onto their cores, or a busy
// machine would measure its scheduler's time slice.
void BM_RawSpinningSockets(benchmark::State& state) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
  const UniqueFd listener = SocketListen("127.0.0.1", 0).value();
  const auto address = ResolveAddress("127.0.0.1", LocalPort(listener.get()).value());
  const UniqueFd client = SocketConnect(*address).value();
  UniqueFd server;
  while (!server) {
    server = SocketAccept(listener.get(), nullptr).value();
  }
  std::atomic<bool> stop{false};
  const auto move_all = [&](int fd, bool write) {
    std::size_t moved = 0;
    for (int turn = 1; moved < bytes.size() && !stop.load(std::memory_order_relaxed); ++turn) {
      const auto rest = std::span(bytes).subspan(moved);
      moved +=
          (write ? SocketWrite(fd, std::span<const std::byte>(rest)) : SocketRead(fd, rest)).bytes;
      if (turn % 16 == 0) {
        sched_yield();
      }
    }
  };
  const std::jthread echo([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      move_all(server.get(), /*write=*/false);
      move_all(server.get(), /*write=*/true);
    }
  });
  LatencyReport report;
  for (auto _ : state) {
    report.Time([&] {
      move_all(client.get(), /*write=*/true);
      move_all(client.get(), /*write=*/false);
    });
  }
  stop = true;
  report.Publish(state);
}
BENCHMARK(BM_RawSpinningSockets)->ArgName("bytes")->Arg(64)->Arg(65536)->UseRealTime();

}  // namespace
}  // namespace mooncake::rpc
