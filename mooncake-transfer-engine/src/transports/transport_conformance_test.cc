#include "mooncake-transfer-engine/src/transports/transport_conformance_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/transports/fake/fake_transport.h"
#include "mooncake-transfer-engine/src/transports/local/local_transport.h"
#include "mooncake-transfer-engine/src/transports/tcp/tcp_transport.h"

namespace mooncake::transfer {
namespace {

// Counts how often each slice ended, and how.
class CountingSink final : public SliceSink {
 public:
  void OnDone(std::span<Slice* const> slices) noexcept override {
    const MutexLock lock(mutex_);
    for (Slice* slice : slices) {
      ++done_[slice];
    }
    ended_ += slices.size();
  }
  void OnFailed(std::span<Slice* const> slices, const Error& why) noexcept override {
    const MutexLock lock(mutex_);
    for (Slice* slice : slices) {
      ++failed_[slice];
    }
    last_error_ = why;
    ended_ += slices.size();
  }

  [[nodiscard]] std::size_t ended() const { return ended_.load(); }
  [[nodiscard]] int Done(Slice* slice) {
    const MutexLock lock(mutex_);
    return done_[slice];
  }
  [[nodiscard]] int Failed(Slice* slice) {
    const MutexLock lock(mutex_);
    return failed_[slice];
  }

 private:
  Mutex mutex_;
  std::map<Slice*, int> done_ MC_GUARDED_BY(mutex_);
  std::map<Slice*, int> failed_ MC_GUARDED_BY(mutex_);
  Error last_error_ MC_GUARDED_BY(mutex_);
  std::atomic<std::size_t> ended_ = 0;
};

bool Same(std::span<const std::byte> left, std::span<const std::byte> right) {
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size()) == 0;
}

class TransportConformance : public testing::TestWithParam<ConformanceCase> {
 protected:
  void SetUp() override {
    peers_ = GetParam().make();
    ASSERT_NE(peers_, nullptr);
    endpoint_ = peers_->Connect();
    ASSERT_NE(endpoint_, nullptr);
  }
  void TearDown() override {
    endpoint_.reset();
    peers_.reset();
  }

  Slice At(std::size_t offset, std::size_t length, Opcode opcode, SliceSink& sink) {
    return Slice{.local = peers_->local().data() + offset,
                 .remote_address = peers_->remote_address() + offset,
                 .length_bytes = length,
                 .opcode = opcode,
                 .sink = &sink};
  }

  // Posts all, driving as long as there is no room, until all have ended.
  static void Run(Endpoint& endpoint, std::span<Slice* const> slices, CountingSink& sink) {
    const std::size_t goal = sink.ended() + slices.size();
    ASSERT_TRUE(WaitUntil([&] {
      if (!slices.empty()) {
        slices = slices.subspan(endpoint.Post(slices));
      }
      endpoint.Drive();
      return sink.ended() >= goal;
    })) << "slices did not end";
  }

  // Not watched by the thread sanitizer: the other end, here a thread of this process, may still
  // read its memory for a transfer that was aborted.
#if defined(__clang__)
  __attribute__((no_sanitize("thread")))
#endif
  void
  Fill(std::uint64_t seed) {
    Rng random(seed);
    for (const auto memory : {peers_->local(), peers_->remote()}) {
      for (std::size_t i = 0; i + sizeof(std::uint64_t) <= memory.size();
           i += sizeof(std::uint64_t)) {
        const std::uint64_t bits = random.Next();
        std::memcpy(memory.data() + i, &bits, sizeof(bits));
      }
    }
  }

  std::unique_ptr<ConformancePeers> peers_;
  std::unique_ptr<Endpoint> endpoint_;
};

TEST_P(TransportConformance, MovesBytesOfEverySizeInBothDirections) {
  for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
    for (const std::size_t size : {1UL, 2UL, 7UL, 64UL, 511UL, 512UL, 513UL, 4095UL, 4096UL,
                                   65535UL, 65536UL, 65537UL, 262144UL, 1048576UL}) {
      SCOPED_TRACE(testing::Message() << "opcode=" << int(opcode) << " size=" << size);
      Fill(size);
      constexpr std::size_t kOffset = 4099;  // On no boundary.
      const std::vector<std::byte> local(peers_->local().begin(), peers_->local().end());
      const std::vector<std::byte> remote(peers_->remote().begin(), peers_->remote().end());
      CountingSink sink;
      Slice slice = At(kOffset, size, opcode, sink);
      Slice* pointer = &slice;
      Run(*endpoint_, std::span(&pointer, 1), sink);
      ASSERT_EQ(sink.Done(&slice), 1);
      const std::vector<std::byte>& source = opcode == Opcode::kRead ? remote : local;
      std::vector<std::byte> wanted_local = local;
      std::vector<std::byte> wanted_remote = remote;
      auto& target = opcode == Opcode::kRead ? wanted_local : wanted_remote;
      std::copy_n(source.begin() + kOffset, size, target.begin() + kOffset);
      ASSERT_TRUE(Same(peers_->local(), wanted_local));
      ASSERT_TRUE(Same(peers_->remote(), wanted_remote));
    }
  }
}

TEST_P(TransportConformance, EndsEachOfManySlicesExactlyOnceWithItsBytesInPlace) {
  constexpr std::size_t kCount = 1000;
  constexpr std::size_t kSize = 1024;
  Fill(1);
  CountingSink sink;
  std::vector<Slice> slices;
  std::vector<Slice*> pointers;
  slices.reserve(kCount);
  pointers.reserve(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const Opcode opcode = i % 2 == 0 ? Opcode::kRead : Opcode::kWrite;
    slices.push_back(At(i * kSize, kSize - i % 7, opcode, sink));
    pointers.push_back(&slices.back());
  }
  Run(*endpoint_, pointers, sink);
  for (Slice& slice : slices) {
    ASSERT_EQ(sink.Done(&slice), 1);
    ASSERT_EQ(sink.Failed(&slice), 0);
    const auto offset = static_cast<std::size_t>(slice.local - peers_->local().data());
    ASSERT_EQ(0, std::memcmp(slice.local, peers_->remote().data() + offset, slice.length_bytes));
  }
  EXPECT_EQ(sink.ended(), kCount);
}

TEST_P(TransportConformance, AnEmptyPostTakesNothing) {
  EXPECT_EQ(endpoint_->Post({}), 0U);
  EXPECT_FALSE(endpoint_->Drive());
  endpoint_->Release();
}

TEST_P(TransportConformance, FinishesOnlyWhatWasTaken) {
  constexpr std::size_t kCount = 5000;
  CountingSink sink;
  std::vector<Slice> slices(kCount, At(0, 512, Opcode::kRead, sink));
  std::vector<Slice*> pointers;
  pointers.reserve(kCount);
  for (Slice& slice : slices) {
    pointers.push_back(&slice);
  }
  const std::size_t taken = endpoint_->Post(pointers);
  ASSERT_LE(taken, kCount);
  ASSERT_TRUE(WaitUntil([&] {
    endpoint_->Drive();
    return sink.ended() >= taken;
  }));
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(sink.Done(&slices[i]), i < taken ? 1 : 0) << i;
  }
}

TEST_P(TransportConformance, AbortEndsAllThatWasTakenAndAPostAfterItWorks) {
  constexpr std::size_t kCount = 64;
  CountingSink sink;
  std::vector<Slice> slices(kCount, At(0, 32768, Opcode::kRead, sink));
  std::vector<Slice*> pointers;
  pointers.reserve(kCount);
  for (Slice& slice : slices) {
    pointers.push_back(&slice);
  }
  const std::size_t taken = endpoint_->Post(pointers);
  endpoint_->Abort(Error{.code = ErrorCode::kCancelled, .message = "test"});
  EXPECT_EQ(sink.ended(), taken) << "Abort returned before all had ended";
  for (std::size_t i = 0; i < taken; ++i) {
    ASSERT_EQ(sink.Done(&slices[i]) + sink.Failed(&slices[i]), 1);
  }
  CountingSink second;
  Fill(2);
  Slice slice = At(100, 1000, Opcode::kWrite, second);
  Slice* pointer = &slice;
  Run(*endpoint_, std::span(&pointer, 1), second);
  EXPECT_EQ(second.Done(&slice), 1);
  EXPECT_EQ(0, std::memcmp(slice.local, peers_->remote().data() + 100, 1000));
}

TEST_P(TransportConformance, MemoryIsNotTouchedAfterAbort) {
  if (!peers_->Stall()) {
    GTEST_SKIP() << "this transport cannot be stalled from here";
  }
  Fill(3);
  CountingSink sink;
  std::vector<Slice> slices(8, At(0, 65536, Opcode::kRead, sink));
  std::vector<Slice*> pointers;
  pointers.reserve(slices.size());
  for (Slice& slice : slices) {
    pointers.push_back(&slice);
  }
  const std::size_t taken = endpoint_->Post(pointers);
  endpoint_->Drive();
  endpoint_->Release();
  endpoint_->Abort(Error{.code = ErrorCode::kTimeout, .message = "test"});
  EXPECT_EQ(sink.ended(), taken);
  const std::vector<std::byte> before(peers_->local().begin(), peers_->local().end());
  peers_->Unstall();
  // Whatever the other end still sends must go nowhere: a whole exchange later nothing has changed.
  CountingSink second;
  Slice slice = At(1U << 20U, 4096, Opcode::kWrite, second);
  Slice* pointer = &slice;
  Run(*endpoint_, std::span(&pointer, 1), second);
  EXPECT_TRUE(Same(peers_->local(), before));
}

TEST_P(TransportConformance, AnEndpointThatGoesAwayEndsWhatItTook) {
  CountingSink sink;
  std::vector<Slice> slices(32, At(0, 65536, Opcode::kRead, sink));
  std::vector<Slice*> pointers;
  pointers.reserve(slices.size());
  for (Slice& slice : slices) {
    pointers.push_back(&slice);
  }
  const std::size_t taken = endpoint_->Post(pointers);
  endpoint_.reset();
  EXPECT_EQ(sink.ended(), taken);
}

TEST_P(TransportConformance, WhatIsReleasedEndsWithoutAnyDriver) {
  CountingSink sink;
  Fill(4);
  Slice slice = At(0, 100'000, Opcode::kRead, sink);
  Slice* pointer = &slice;
  ASSERT_EQ(endpoint_->Post(std::span(&pointer, 1)), 1U);
  endpoint_->Release();
  EXPECT_TRUE(WaitUntil([&] { return sink.ended() > 0; }));
  EXPECT_EQ(sink.Done(&slice), 1);
  EXPECT_EQ(0, std::memcmp(slice.local, peers_->remote().data(), 100'000));
}

TEST_P(TransportConformance, ManyThreadsShareOneEndpoint) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kRounds = 20;
  constexpr std::size_t kShare = ConformancePeers::kBytes / kThreads;
  Fill(5);
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      CountingSink sink;
      for (std::size_t round = 0; round < kRounds; ++round) {
        constexpr std::size_t kCount = 16;
        std::vector<Slice> slices;
        std::vector<Slice*> pointers;
        slices.reserve(kCount);
        pointers.reserve(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          const std::size_t offset = t * kShare + i * 8192;
          slices.push_back(At(offset, 8000, round % 2 == 0 ? Opcode::kRead : Opcode::kWrite, sink));
          pointers.push_back(&slices.back());
        }
        Run(*endpoint_, pointers, sink);
        for (Slice& slice : slices) {
          ASSERT_EQ(sink.Failed(&slice), 0);
          const auto offset = static_cast<std::size_t>(slice.local - peers_->local().data());
          ASSERT_EQ(0, std::memcmp(slice.local, peers_->remote().data() + offset, 8000));
        }
      }
    });
  }
}

class FakePeers final : public ConformancePeers {
 public:
  explicit FakePeers(const FakeOptions& options)
      : transport_(1, options), local_(kBytes), remote_(kBytes) {
    EXPECT_TRUE(transport_.Start());
  }
  std::unique_ptr<Endpoint> Connect() override {
    return transport_.Connect(std::make_shared<const SegmentDescriptor>()).value();
  }
  std::span<std::byte> local() override { return local_; }
  std::span<std::byte> remote() override { return remote_; }
  std::uint64_t remote_address() override {
    return reinterpret_cast<std::uint64_t>(remote_.data());
  }
  bool Stall() override {
    transport_.switches().stalled = true;
    return true;
  }
  void Unstall() override { transport_.switches().stalled = false; }

 private:
  FakeTransport transport_;
  std::vector<std::byte> local_;
  std::vector<std::byte> remote_;
};

// The process talks to itself: both ends are registered memory of one region table.
class OwnMemory : public ConformancePeers {
 public:
  OwnMemory() : local_(kBytes), remote_(kBytes) {
    for (const auto& memory : {std::span(local_), std::span(remote_)}) {
      EXPECT_TRUE(regions_.Add({.address = reinterpret_cast<std::uintptr_t>(memory.data()),
                                .length_bytes = memory.size()}));
    }
  }
  std::span<std::byte> local() override { return local_; }
  std::span<std::byte> remote() override { return remote_; }
  std::uint64_t remote_address() override {
    return reinterpret_cast<std::uint64_t>(remote_.data());
  }

 protected:
  static std::unique_ptr<Endpoint> ConnectToItself(Transport& transport) {
    auto descriptor = std::make_shared<SegmentDescriptor>();
    descriptor->name = "127.0.0.1";
    transport.Announce(*descriptor);
    auto endpoint = transport.Connect(descriptor);
    EXPECT_TRUE(endpoint) << endpoint.error().ToString();
    return *std::move(endpoint);
  }
  RegionTable& regions() { return regions_; }

 private:
  RegionTable regions_;
  std::vector<std::byte> local_;
  std::vector<std::byte> remote_;
};

class LocalPeers final : public OwnMemory {
 public:
  explicit LocalPeers(const LocalTransportOptions& options) : transport_(regions(), options) {
    EXPECT_TRUE(transport_.Start());
  }
  std::unique_ptr<Endpoint> Connect() override { return ConnectToItself(transport_); }

 private:
  LocalTransport transport_;
};

ConformanceCase Local(std::string name, const LocalTransportOptions& options) {
  return {.name = std::move(name),
          .make = [options] { return std::make_unique<LocalPeers>(options); }};
}

class TcpPeers final : public OwnMemory {
 public:
  explicit TcpPeers(const TcpTransportOptions& options)
      : transport_(reactor_, regions(), Rng(1), options) {
    EXPECT_TRUE(reactor_.Start());
    EXPECT_TRUE(transport_.Start());
  }
  ~TcpPeers() override { stalled_ = false; }
  std::unique_ptr<Endpoint> Connect() override { return ConnectToItself(transport_); }
  // The server's thread is kept busy.
  bool Stall() override {
    stalled_ = true;
    reactor_.Post([this] {
      while (stalled_) {
        std::this_thread::yield();
      }
    });
    return true;
  }
  void Unstall() override { stalled_ = false; }

 private:
  std::atomic<bool> stalled_ = false;
  Reactor reactor_;
  TcpTransport transport_;
};

ConformanceCase Tcp(std::string name, TcpTransportOptions options) {
  options.ports = {.min = 0, .max = 0};
  return {.name = std::move(name),
          .make = [options] { return std::make_unique<TcpPeers>(options); }};
}

ConformanceCase Fake(std::string name, FakeOptions options) {
  options.background = true;
  return {.name = std::move(name),
          .make = [options] { return std::make_unique<FakePeers>(options); }};
}

INSTANTIATE_TEST_SUITE_P(
    All, TransportConformance,
    testing::Values(Fake("fake", {}), Fake("fake_small", {.capacity = 3}),
                    Fake("fake_instant", {.instant = true}), Local("local", {}),
                    Local("local_queued", {.inline_bytes = 0, .chunk_bytes = 1000}), Tcp("tcp", {}),
                    Tcp("tcp_v2", {.use_extension = false}), Tcp("tcp_v1", {.force_v1 = true}),
                    Tcp("tcp_many_lanes", {.max_queued_bytes = 100'000, .bytes_per_lane = 1000})),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace mooncake::transfer
