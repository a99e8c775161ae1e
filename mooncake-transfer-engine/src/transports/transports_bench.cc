// What the transports reach between two processes, beside what the machine can do: memcpy, one
// process_vm call, one raw TCP connection whose ends both spin. All in one run, medians, because
// machines are noisy: look at the ratios.
//
// Good (goals of the design, each against its limit): local at least 0.8 of memcpy on shared memory
// and 0.8 of process_vm on other memory, a 4 KiB read in 1.5 us; tcp at least 0.8 of raw TCP for
// 4 KiB x 128 and 0.9 from 64 KiB up, a 4 KiB read in 10 us while busy. Idle: no CPU at all.
//
//   transports_bench [--benchmark_min_time=SECONDS of each row]
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-transfer-engine/src/transports/local/local_transport.h"
#include "mooncake-transfer-engine/src/transports/tcp/tcp_transport.h"

namespace mooncake::transfer {
namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr std::size_t kMemoryBytes = std::size_t{64} << 20;

std::byte* Map(int fd, int flags) {
  void* const base = ::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  MC_CHECK(base != MAP_FAILED);
  std::memset(base, 1, kMemoryBytes);
  return static_cast<std::byte*>(base);
}

// Reads or writes exactly `length_bytes`, spinning.
bool MoveAll(int fd, std::byte* base, std::size_t length_bytes, bool read) {
  SpinWait spin(kEndlessSpin);
  while (length_bytes > 0) {
    const IoOutcome outcome = read ? SocketRead(fd, std::span(base, length_bytes))
                                   : SocketWrite(fd, std::span(base, length_bytes));
    if (outcome.kind == IoOutcome::Kind::kWouldBlock) {
      (void)spin.Turn();  // As those who wait do: now and then it lets others onto this core.
      continue;
    }
    if (outcome.kind != IoOutcome::Kind::kMoved) {
      return false;
    }
    base += outcome.bytes;
    length_bytes -= outcome.bytes;
  }
  return true;
}

struct PeerFacts {  // Goes through a pipe as it is.
  std::array<char, 64> host_id{};
  std::uint64_t pid_namespace = 0;
  std::int32_t pid = 0;
  std::uint64_t nonce = 0;
  std::uint64_t nonce_address = 0;
  std::uint32_t tcp_extension_version = 0;
  std::uint64_t private_address = 0;
  std::uint64_t shared_address = 0;
  int shared_fd = -1;
  std::uint16_t data_port = 0;
  std::uint16_t raw_port = 0;
};

// The other process: serves by both transports, and the raw connection by a spinning thread while
// one is open.
[[noreturn]] void RunPeer(int pipe) {
  RegionTable regions;
  Reactor reactor;
  LocalTransport local(regions);
  TcpTransport tcp(reactor, regions, Rng(1), {.ports = {.min = 0, .max = 0}});
  MC_CHECK(reactor.Start() && local.Start() && tcp.Start());
  const int fd = ::memfd_create("transports_bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  MC_CHECK(fd >= 0 && ::ftruncate(fd, kMemoryBytes) == 0 &&
           ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  std::byte* const shared = Map(fd, MAP_SHARED);
  std::byte* const other = Map(-1, MAP_PRIVATE | MAP_ANONYMOUS);
  for (std::byte* const memory : {shared, other}) {
    MC_CHECK(regions
                 .Add({.address = reinterpret_cast<std::uintptr_t>(memory),
                       .length_bytes = kMemoryBytes})
                 .has_value());
  }
  const UniqueFd listener = SocketListen("127.0.0.1", 0).value();
  SegmentDescriptor descriptor;
  local.Announce(descriptor);
  tcp.Announce(descriptor);
  PeerFacts facts{.private_address = reinterpret_cast<std::uintptr_t>(other),
                  .shared_address = reinterpret_cast<std::uintptr_t>(shared),
                  .shared_fd = fd,
                  .data_port = descriptor.tcp_data_port,
                  .raw_port = LocalPort(listener.get()).value()};
  std::ranges::copy(descriptor.extension->host_id, facts.host_id.begin());
  facts.pid_namespace = descriptor.extension->pid_namespace;
  facts.pid = descriptor.extension->pid;
  facts.nonce = descriptor.extension->nonce;
  facts.nonce_address = descriptor.extension->nonce_address;
  facts.tcp_extension_version = descriptor.extension->tcp_extension_version;
  MC_CHECK(::write(pipe, &facts, sizeof facts) == sizeof facts);
  for (;;) {
    pollfd waiting{.fd = listener.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, -1);
    const UniqueFd raw = SocketAccept(listener.get(), nullptr).value();
    std::array<std::uint64_t, 2> request{};  // Length, and whether it is a write.
    while (raw && MoveAll(raw.get(), reinterpret_cast<std::byte*>(request.data()), sizeof request,
                          /*read=*/true)) {
      const bool write = request[1] != 0;
      std::byte status{};
      if (!MoveAll(raw.get(), other, request[0], write) ||
          (write && !MoveAll(raw.get(), &status, 1, /*read=*/false))) {
        break;
      }
    }
  }
}

class WaitSink final : public SliceSink {
 public:
  void OnDone(std::span<Slice* const> slices) noexcept override { ended_ += slices.size(); }
  void OnFailed(std::span<Slice* const>, const Error& why) noexcept override {
    fmt::print(stderr, "failed: {}\n", why.ToString());
    std::abort();
  }
  [[nodiscard]] std::size_t ended() const { return ended_.load(); }

 private:
  std::atomic<std::size_t> ended_ = 0;
};

struct Work {
  std::string_view name;
  Opcode opcode;
  std::size_t block_bytes;
  std::size_t count;

  [[nodiscard]] std::size_t bytes() const { return block_bytes * count; }
};

constexpr std::array kWorks{Work{"read 4 KiB", Opcode::kRead, 4096, 1},
                            Work{"write 64 B", Opcode::kWrite, 64, 1},
                            Work{"read 4 KiB x 128", Opcode::kRead, 4096, 128},
                            Work{"write 4 KiB x 128", Opcode::kWrite, 4096, 128},
                            Work{"read 64 KiB x 128", Opcode::kRead, 65536, 128},
                            Work{"write 64 KiB x 128", Opcode::kWrite, 65536, 128},
                            Work{"read 1 MiB x 16", Opcode::kRead, 1 << 20, 16},
                            Work{"write 1 MiB x 16", Opcode::kWrite, 1 << 20, 16}};

// Blocks lie apart from each other, as blocks of a cache do, unless they fill the memory.
std::size_t Offset(const Work& work, std::size_t i) {
  const std::size_t stride = std::min(work.block_bytes * 2, kMemoryBytes / work.count);
  return i * stride;
}

class Bench {
 public:
  Bench(const PeerFacts& facts, double seconds)
      : facts_(facts), seconds_(seconds), tcp_(reactor_, regions_, Rng(2), {}) {
    MC_CHECK(reactor_.Start() && local_.Start());
    MC_CHECK(regions_
                 .Add({.address = reinterpret_cast<std::uintptr_t>(memory_),
                       .length_bytes = kMemoryBytes})
                 .has_value());
    auto peer = std::make_shared<SegmentDescriptor>();
    peer->name = "127.0.0.1";
    peer->tcp_data_port = facts.data_port;
    peer->tcp_proto_version = 2;
    peer->extension = PeerExtension{.host_id = facts.host_id.data(),
                                    .pid_namespace = facts.pid_namespace,
                                    .pid = facts.pid,
                                    .nonce = facts.nonce,
                                    .nonce_address = facts.nonce_address,
                                    .tcp_extension_version = facts.tcp_extension_version};
    peer->buffers = {{.address = facts.private_address, .length_bytes = kMemoryBytes},
                     {.address = facts.shared_address,
                      .length_bytes = kMemoryBytes,
                      .shared = SharedMemory{.fd = facts.shared_fd}}};
    peer_ = peer;
    MC_CHECK(tcp_.Start().has_value());
    local_way_ = local_.Connect(peer_).value();
    tcp_way_ = tcp_.Connect(peer_).value();
  }

  void Run() {
    fmt::print("{:20} {:>22} {:>22} {:>9} | {:>22} {:>22} {:>7} | {:>22} {:>22} {:>7}\n", "work",
               "local, shared memory", "memcpy", "ratio", "local, other memory", "process_vm",
               "ratio", "tcp", "raw tcp, spinning", "ratio");
    for (const Work& work : kWorks) {
      const double shared = Transfer(*local_way_, work, facts_.shared_address);
      const double copy = Memcpy(work);
      const double other = Transfer(*local_way_, work, facts_.private_address);
      const double vm = ProcessVm(work);
      const double tcp = Transfer(*tcp_way_, work, facts_.private_address);
      const double raw = RawTcp(work);
      fmt::print("{:20} {:>22} {:>22} {:9.2f} | {:>22} {:>22} {:7.2f} | {:>22} {:>22} {:7.2f}\n",
                 work.name, Text(work, shared), Text(work, copy), copy / shared, Text(work, other),
                 Text(work, vm), vm / other, Text(work, tcp), Text(work, raw), raw / tcp);
    }
    Idle();
  }

 private:
  static std::string Text(const Work& work, double microseconds) {
    return fmt::format("{:9.2f} us {:5.2f} GB/s", microseconds,
                       static_cast<double>(work.bytes()) / microseconds / 1e3);
  }

  // Median of the time that one call takes, in microseconds.
  double Median(const std::function<void()>& call) const {
    std::vector<double> times;
    const auto end = SteadyTime::now() + std::chrono::duration<double>(seconds_);
    call();
    do {
      const auto begin = SteadyTime::now();
      call();
      times.push_back(std::chrono::duration<double, std::micro>(SteadyTime::now() - begin).count());
    } while (SteadyTime::now() < end);
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
    return times[times.size() / 2];
  }

  double Transfer(Endpoint& endpoint, const Work& work, std::uint64_t remote) {
    WaitSink sink;
    std::vector<Slice> slices(work.count);
    std::vector<Slice*> pointers;
    for (std::size_t i = 0; i < work.count; ++i) {
      slices[i] = {.local = memory_ + Offset(work, i),
                   .remote_address = remote + Offset(work, i),
                   .length_bytes = work.block_bytes,
                   .opcode = work.opcode,
                   .sink = &sink};
      pointers.push_back(&slices[i]);
    }
    std::size_t goal = 0;
    const double time = Median([&] {
      goal += work.count;
      std::span<Slice* const> left = pointers;
      SpinWait spin(kEndlessSpin);
      while (!left.empty() || sink.ended() < goal) {
        left = left.subspan(left.empty() ? 0 : endpoint.Post(left));
        if (sink.ended() < goal && !endpoint.Drive()) {
          (void)spin.Turn();
        }
      }
    });
    endpoint.Release();
    return time;
  }

  double Memcpy(const Work& work) {
    return Median([&] {
      for (std::size_t i = 0; i < work.count; ++i) {
        std::memcpy(memory_ + Offset(work, i), source_ + Offset(work, i), work.block_bytes);
      }
    });
  }

  double ProcessVm(const Work& work) {
    std::vector<iovec> here;
    std::vector<iovec> there;
    for (std::size_t i = 0; i < work.count; ++i) {
      here.push_back({memory_ + Offset(work, i), work.block_bytes});
      there.push_back(
          {reinterpret_cast<void*>(facts_.private_address + Offset(work, i)), work.block_bytes});
    }
    return Median([&] {
      const ssize_t moved = work.opcode == Opcode::kRead
                                ? ::process_vm_readv(facts_.pid, here.data(), here.size(),
                                                     there.data(), there.size(), 0)
                                : ::process_vm_writev(facts_.pid, here.data(), here.size(),
                                                      there.data(), there.size(), 0);
      MC_CHECK(moved == static_cast<ssize_t>(work.bytes()));
    });
  }

  double RawTcp(const Work& work) {
    const UniqueFd raw =
        SocketConnect(ResolveAddress("127.0.0.1", facts_.raw_port).value()).value();
    const bool write = work.opcode == Opcode::kWrite;
    std::array<std::uint64_t, 2> request{work.bytes(), write ? 1U : 0U};
    return Median([&] {
      std::byte status{};
      MC_CHECK(MoveAll(raw.get(), reinterpret_cast<std::byte*>(request.data()), sizeof request,
                       /*read=*/false));
      MC_CHECK(MoveAll(raw.get(), memory_, work.bytes(), /*read=*/!write));
      MC_CHECK(!write || MoveAll(raw.get(), &status, 1, /*read=*/true));
    });
  }

  // Both ends have an open connection and nothing to do. Over a short time most of the CPU is that
  // of measuring; the wake-ups tell.
  void Idle() {
    const auto cpu = [] {
      rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
             static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    };
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // What was last asked has ended.
    const double before = cpu();
    const std::uint64_t sleeps = reactor_.sleeps();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    fmt::print(
        "idle: {:.3f} % CPU (the measurement included), {} wake-ups of the reactor, {} "
        "threads beside the caller\n",
        (cpu() - before) / seconds_ * 100, reactor_.sleeps() - sleeps, threads - 1);
  }

  const PeerFacts facts_;
  const double seconds_;
  std::byte* const memory_ = Map(-1, MAP_PRIVATE | MAP_ANONYMOUS);
  std::byte* const source_ = Map(-1, MAP_PRIVATE | MAP_ANONYMOUS);
  RegionTable regions_;
  Reactor reactor_;
  LocalTransport local_{regions_};
  TcpTransport tcp_;
  std::shared_ptr<const SegmentDescriptor> peer_;
  std::unique_ptr<Endpoint> local_way_;
  std::unique_ptr<Endpoint> tcp_way_;
};

}  // namespace

int BenchMain(int count, char** arguments) {
  constexpr std::string_view kFlag = "--benchmark_min_time=";
  double seconds = 0.3;
  for (const std::string_view argument : std::span(arguments, static_cast<std::size_t>(count))) {
    if (argument.starts_with(kFlag)) {
      seconds = std::stod(std::string(argument.substr(kFlag.size())));
    }
  }
  std::array<int, 2> pipe{};
  MC_CHECK(::pipe(pipe.data()) == 0);
  const pid_t peer = ::fork();
  if (peer == 0) {
    RunPeer(pipe[1]);
  }
  PeerFacts facts;
  MC_CHECK(::read(pipe[0], &facts, sizeof facts) == sizeof facts);
  Bench(facts, seconds).Run();
  ::kill(peer, SIGKILL);
  ::waitpid(peer, nullptr, 0);
  return 0;
}

}  // namespace mooncake::transfer

int main(int count, char** arguments) { return mooncake::transfer::BenchMain(count, arguments); }
