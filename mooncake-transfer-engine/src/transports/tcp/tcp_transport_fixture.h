// Two ends of the transport in one process, a plain socket to stand in for either, and a sink that
// counts. For tests only.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/transports/tcp/tcp_transport.h"

namespace mooncake::transfer {

using Bytes = std::vector<std::byte>;

inline constexpr std::size_t kMemoryBytes = std::size_t{8} << 20;

// A plain socket, as any program may open one.
class RawSocket {
 public:
  explicit RawSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  static RawSocket To(std::uint16_t port) {
    return RawSocket(SocketConnect(ResolveAddress("127.0.0.1", port).value()).value());
  }
  void Send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      Wait(POLLOUT);
      const IoOutcome outcome = SocketWrite(fd_.get(), bytes);
      ASSERT_NE(outcome.kind, IoOutcome::Kind::kFailed);
      bytes = bytes.subspan(outcome.kind == IoOutcome::Kind::kMoved ? outcome.bytes : 0);
    }
  }
  // Exactly `length` bytes, fewer if the peer closes first.
  Bytes Receive(std::size_t length) {
    Bytes bytes(length);
    std::size_t got = 0;
    while (got < length) {
      Wait(POLLIN);
      const IoOutcome outcome = SocketRead(fd_.get(), std::span(bytes).subspan(got));
      if (outcome.kind == IoOutcome::Kind::kMoved) {
        got += outcome.bytes;
      } else if (outcome.kind != IoOutcome::Kind::kWouldBlock) {
        break;
      }
    }
    bytes.resize(got);
    return bytes;
  }
  // The peer closes, orderly or by a reset, and sends nothing before.
  [[nodiscard]] bool IsClosed() { return Receive(1).empty(); }
  void Close() { fd_.Reset(); }

 private:
  void Wait(short events) const {
    pollfd entry{.fd = fd_.get(), .events = events, .revents = 0};
    ASSERT_EQ(::poll(&entry, 1, kHangLimitMs), 1) << "hangs";
  }
  UniqueFd fd_;
};

class CountingSink final : public SliceSink {
 public:
  void OnDone(std::span<Slice* const> slices) noexcept override { done_ += slices.size(); }
  void OnFailed(std::span<Slice* const> slices, const Error& why) noexcept override {
    {
      const MutexLock lock(mutex_);
      last_ = why;
    }
    failed_ += slices.size();
  }
  [[nodiscard]] std::size_t done() const { return done_; }
  [[nodiscard]] std::size_t failed() const { return failed_; }
  [[nodiscard]] std::size_t ended() const { return done_ + failed_; }
  [[nodiscard]] Error last() {
    const MutexLock lock(mutex_);
    return last_;
  }

 private:
  std::atomic<std::size_t> done_ = 0;
  std::atomic<std::size_t> failed_ = 0;
  Mutex mutex_;
  Error last_ MC_GUARDED_BY(mutex_);
};

inline std::byte* Map(std::size_t bytes) {
  void* const base =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MC_CHECK(base != MAP_FAILED);
  return static_cast<std::byte*>(base);
}

// One end in this process: memory, reactor, transport.
struct End {
  explicit End(TcpTransportOptions options = {})
      : transport(reactor, regions, Rng(1), Fix(std::move(options))) {
    MC_CHECK(reactor.Start().has_value());
    MC_CHECK(transport.Start().has_value());
    MC_CHECK(regions.Add({.address = address(), .length_bytes = kMemoryBytes}).has_value());
  }
  ~End() {
    transport.Stop();
    reactor.Stop();
    ::munmap(memory, kMemoryBytes);
  }
  static TcpTransportOptions Fix(TcpTransportOptions options) {
    options.ports = {.min = 0, .max = 0};
    options.advertised_host = options.listen_host.empty() ? "127.0.0.1" : options.listen_host;
    return options;
  }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory); }
  [[nodiscard]] std::shared_ptr<SegmentDescriptor> Describe() const {
    auto descriptor = std::make_shared<SegmentDescriptor>();
    transport.Announce(*descriptor);
    return descriptor;
  }

  std::byte* const memory = Map(kMemoryBytes);
  RegionTable regions;
  Reactor reactor;
  TcpTransport transport;
};

class TcpTransportTest : public testing::Test {
 protected:
  Slice MakeSlice(Opcode opcode, std::byte* local, std::uint64_t remote, std::uint64_t length) {
    return {.local = local,
            .remote_address = remote,
            .length_bytes = length,
            .opcode = opcode,
            .sink = &sink_};
  }
  // Posts all and drives until all have ended.
  void Run(Endpoint& endpoint, std::vector<Slice>& slices) {
    std::vector<Slice*> pointers;
    pointers.reserve(slices.size());
    for (Slice& slice : slices) {
      pointers.push_back(&slice);
    }
    const std::size_t goal = sink_.ended() + slices.size();
    std::span<Slice* const> left = pointers;
    ASSERT_TRUE(WaitUntil([&] {
      left = left.subspan(endpoint.Post(left));
      endpoint.Drive();
      return sink_.ended() >= goal;
    }));
  }
  // A listener that this test serves by hand, and a descriptor of it.
  std::shared_ptr<SegmentDescriptor> DescribeRaw(std::uint32_t version) {
    listener_ = SocketListen("127.0.0.1", 0).value();
    auto descriptor = std::make_shared<SegmentDescriptor>();
    descriptor->tcp_data_host = "127.0.0.1";
    descriptor->tcp_data_port = LocalPort(listener_.get()).value();
    descriptor->tcp_proto_version = version;
    return descriptor;
  }
  // The next connection to it, while `endpoint` is driven.
  RawSocket AcceptRaw(Endpoint& endpoint) {
    UniqueFd fd;
    EXPECT_TRUE(WaitUntil([&] {
      endpoint.Drive();
      fd = SocketAccept(listener_.get(), nullptr).value();
      return static_cast<bool>(fd);
    }));
    return RawSocket(std::move(fd));
  }

  CountingSink sink_;
  UniqueFd listener_;
};

}  // namespace mooncake::transfer
