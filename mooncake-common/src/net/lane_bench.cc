// One caller, one peer that spins and echoes 8 bytes over loopback TCP; what differs is who reads
// the answer, and who else is woken for it.
//
// Good: BM_Lane within a microsecond of BM_Raw, with the reactor asleep (wakeups 0). The others are
// the arrangements that lanes were chosen over; docs/design/lanes.md draws the conclusions.
#include <benchmark/benchmark.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/lane.h"
#include "mooncake-common/src/net/latency_report.h"
#include "mooncake-common/src/net/loopback_peer.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {
namespace {

constexpr std::size_t kBytes = 8;
using Message = std::array<std::byte, kBytes>;

void WriteAll(int fd) {
  const Message message{};
  MC_CHECK(SocketWrite(fd, std::span<const std::byte>(message)).bytes == kBytes);
}

bool TryRead(int fd) {
  Message message{};
  return SocketRead(fd, message).kind == IoOutcome::Kind::kMoved;
}

void ServeEcho(int fd, const std::stop_token& stop) {
  for (Message message{}; SpinRead(fd, message, stop);) {
    WriteAll(fd);
  }
}

void Ask(int fd) {
  WriteAll(fd);
  Message answer{};
  SpinRead(fd, answer);
}

// Nobody but the caller knows of the socket.
void BM_Raw(benchmark::State& state) {
  LoopbackPeer echo(&ServeEcho);
  LatencyReport report;
  for (auto _ : state) {
    report.Time([&] { Ask(echo.client.get()); });
  }
  report.Publish(state);
}
BENCHMARK(BM_Raw)->UseRealTime();

class EchoDriver final : public LaneDriver {
 public:
  void Post() {
    ended.Reset();
    posted_.store(true, std::memory_order_release);
  }
  Result<Progress> Drive(int fd) override {
    if (posted_.exchange(false, std::memory_order_acquire)) {
      WriteAll(fd);
      waiting_ = true;
      return Progress::kMoved;
    }
    if (!TryRead(fd)) {
      return Progress::kIdle;
    }
    waiting_ = false;
    ended.Notify();
    return Progress::kMoved;
  }
  bool HasPending() override { return waiting_ || posted_.load(std::memory_order_relaxed); }
  bool WantsWrite() override { return false; }
  void OnClosed(const Error& /*why*/) override {}

  Event ended;

 private:
  std::atomic<bool> posted_{false};
  bool waiting_ = false;
};

// A lane. Argument: how long the caller spins, in microseconds; 0 = it sleeps, the reactor reads.
void BM_Lane(benchmark::State& state) {
  LoopbackPeer echo(&ServeEcho);
  Reactor reactor;
  MC_CHECK(reactor.Start().has_value());
  EchoDriver driver;
  auto lane = Lane::Create(reactor, std::move(echo.client), driver).value();
  const auto spin = std::chrono::microseconds(state.range(0));
  LatencyReport report;
  for (auto _ : state) {
    report.Time([&] {
      driver.Post();
      if (!lane->DriveUntil([&] { return driver.ended.IsSet(); }, spin)) {
        MC_CHECK(driver.ended.Wait(Instant::max(), Duration::zero()));
      }
    });
  }
  report.Publish(state);
  state.counters["wakeups"] = benchmark::Counter(static_cast<double>(lane->reactor_wakeups()),
                                                 benchmark::Counter::kAvgIterations);
}
BENCHMARK(BM_Lane)->ArgName("spin_us")->Arg(50)->Arg(0)->UseRealTime();

// The caller spins for its answer, while another thread waits for the same socket edge-triggered,
// as event loops do that register a socket once and for all: it is woken by each packet.
void BM_SpinBesideEdgeTriggeredThread(benchmark::State& state) {
  LoopbackPeer echo(&ServeEcho);
  const UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  const UniqueFd quit(eventfd(0, EFD_CLOEXEC));
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = echo.client.get()}};
  MC_CHECK(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, echo.client.get(), &event) == 0);
  epoll_event quit_event{.events = EPOLLIN, .data = {.fd = quit.get()}};
  MC_CHECK(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, quit.get(), &quit_event) == 0);
  std::uint64_t wakeups = 0;
  std::jthread waiter([&] {
    for (epoll_event got{};
         epoll_wait(epoll.get(), &got, 1, -1) < 1 || got.data.fd != quit.get();) {
      ++wakeups;
    }
  });
  LatencyReport report;
  for (auto _ : state) {
    report.Time([&] { Ask(echo.client.get()); });
  }
  MC_CHECK(eventfd_write(quit.get(), 1) == 0);
  waiter.join();
  report.Publish(state);
  state.counters["wakeups"] =
      benchmark::Counter(static_cast<double>(wakeups), benchmark::Counter::kAvgIterations);
}
BENCHMARK(BM_SpinBesideEdgeTriggeredThread)->UseRealTime();

// The same with Asio: its thread runs the io_context that the socket belongs to.
void BM_SpinBesideAsioThread(benchmark::State& state) {
  namespace asio = boost::asio;
  LoopbackPeer echo(&ServeEcho);
  asio::io_context context;
  const auto work = asio::make_work_guard(context);
  asio::ip::tcp::socket socket(context, asio::ip::tcp::v4(), echo.client.Release());
  std::jthread runner([&] { context.run(); });
  LatencyReport report;
  for (auto _ : state) {
    report.Time([&] { Ask(socket.native_handle()); });
  }
  context.stop();
  report.Publish(state);
}
BENCHMARK(BM_SpinBesideAsioThread)->UseRealTime();

// All by Asio: its thread reads the answer, and the caller sleeps until then.
void BM_AsioThreadReads(benchmark::State& state) {
  namespace asio = boost::asio;
  LoopbackPeer echo(&ServeEcho);
  asio::io_context context;
  const auto work = asio::make_work_guard(context);
  asio::ip::tcp::socket socket(context, asio::ip::tcp::v4(), echo.client.Release());
  std::jthread runner([&] { context.run(); });
  Message message{};
  LatencyReport report;
  for (auto _ : state) {
    report.Time([&] {
      Event ended;
      WriteAll(socket.native_handle());
      socket.async_read_some(asio::buffer(message), [&ended](const boost::system::error_code&,
                                                             std::size_t) { ended.Notify(); });
      MC_CHECK(ended.Wait(Instant::max(), std::chrono::microseconds(50)));
    });
  }
  context.stop();
  report.Publish(state);
}
BENCHMARK(BM_AsioThreadReads)->UseRealTime();

}  // namespace
}  // namespace mooncake
