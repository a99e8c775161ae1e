#include "mooncake-transfer-engine/src/transports/local/local_transport.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::transfer {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBufferBytes = std::size_t{8} << 20;

std::byte* MapPrivate(std::size_t bytes) {
  void* const base =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MC_CHECK(base != MAP_FAILED);
  return static_cast<std::byte*>(base);
}

struct Memfd {
  int fd = -1;
  std::byte* base = nullptr;
};

Memfd MapShared(std::size_t bytes, bool sealed = true) {
  Memfd made;
  made.fd = ::memfd_create("local_transport_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  MC_CHECK(made.fd >= 0 && ::ftruncate(made.fd, static_cast<off_t>(bytes)) == 0);
  MC_CHECK(!sealed || ::fcntl(made.fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
  MC_CHECK(base != MAP_FAILED);
  made.base = static_cast<std::byte*>(base);
  return made;
}

// Another process with a private and a shared buffer, and a transport that announces them. It obeys
// over a socket: fill a range, compare a range, leave.
class ChildPeer {
 public:
  struct Settings {
    bool sealed = true;
    bool wrong_fd = false;  // Announces the number of another memfd of the same size.
    bool vouched = false;   // A thread of it vouches for it; else peers ask the kernel.
  };

  explicit ChildPeer(Settings settings) {
    std::array<int, 2> ends{};
    MC_CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    pid_ = ::fork();
    MC_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      ::close(ends[0]);
      Serve(ends[1], settings);
      ::_exit(0);
    }
    ::close(ends[1]);
    socket_ = ends[0];
    MC_CHECK(::read(socket_, &facts_, sizeof facts_) == sizeof facts_);
  }
  ~ChildPeer() {
    Kill();
    ::close(socket_);
  }
  ChildPeer(const ChildPeer&) = delete;
  ChildPeer& operator=(const ChildPeer&) = delete;

  void Kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

  [[nodiscard]] std::shared_ptr<SegmentDescriptor> Describe() const {
    auto descriptor = std::make_shared<SegmentDescriptor>();
    descriptor->name = "child";
    descriptor->buffers.push_back(
        {.name = "child", .address = facts_.private_address, .length_bytes = kBufferBytes});
    descriptor->buffers.push_back({.name = "child",
                                   .address = facts_.shared_address,
                                   .length_bytes = kBufferBytes,
                                   .shared = SharedMemory{.fd = facts_.fd}});
    descriptor->extension = PeerExtension{.host_id = std::string(facts_.host_id.data()),
                                          .pid_namespace = facts_.pid_namespace,
                                          .pid = facts_.pid,
                                          .nonce = facts_.nonce,
                                          .nonce_address = facts_.nonce_address,
                                          .nonce_fd = facts_.nonce_fd};
    return descriptor;
  }
  [[nodiscard]] std::uint64_t private_address() const { return facts_.private_address; }
  [[nodiscard]] std::uint64_t shared_address() const { return facts_.shared_address; }

  void Fill(std::uint64_t address, std::uint64_t length, int value) {
    MC_CHECK(Ask({'f', value, address, length}));
  }
  // Whether the child sees `value` in each byte of the range.
  [[nodiscard]] bool Sees(std::uint64_t address, std::uint64_t length, int value) {
    return Ask({'c', value, address, length});
  }
  void Revoke() { MC_CHECK(Ask({'r', 0, 0, 0})); }

 private:
  struct Facts {
    std::array<char, 64> host_id{};
    std::uint64_t pid_namespace = 0;
    std::int32_t pid = 0;
    std::uint64_t nonce = 0;
    std::uint64_t nonce_address = 0;
    std::int32_t nonce_fd = -1;
    std::uint64_t private_address = 0;
    std::uint64_t shared_address = 0;
    int fd = -1;
  };
  struct Order {
    char what;
    int value;
    std::uint64_t address;
    std::uint64_t length;
  };

  bool Ask(const Order& order) {
    bool answer = false;
    MC_CHECK(::write(socket_, &order, sizeof order) == sizeof order);
    MC_CHECK(::read(socket_, &answer, sizeof answer) == sizeof answer);
    return answer;
  }

  static void Serve(int socket, Settings settings) {
    RegionTable regions;
    LocalTransport transport(
        regions, {.on_lasting_thread = [](const std::function<void()>& run) { run(); }});
    MC_CHECK(transport.Start().has_value());
    const Memfd shared = MapShared(kBufferBytes, settings.sealed);
    const Memfd other = MapShared(kBufferBytes);
    SegmentDescriptor descriptor;
    transport.Announce(descriptor);
    Facts facts{.pid_namespace = descriptor.extension->pid_namespace,
                .pid = descriptor.extension->pid,
                .nonce = descriptor.extension->nonce,
                .nonce_address = descriptor.extension->nonce_address,
                .nonce_fd = settings.vouched ? descriptor.extension->nonce_fd : -1,
                .private_address = reinterpret_cast<std::uintptr_t>(MapPrivate(kBufferBytes)),
                .shared_address = reinterpret_cast<std::uintptr_t>(shared.base),
                .fd = settings.wrong_fd ? other.fd : shared.fd};
    std::ranges::copy(descriptor.extension->host_id, facts.host_id.begin());
    MC_CHECK(::write(socket, &facts, sizeof facts) == sizeof facts);
    Order order{};
    while (::read(socket, &order, sizeof order) == sizeof order) {
      auto* const begin =
          reinterpret_cast<std::byte*>(order.address);  // NOLINT(performance-no-int-to-ptr)
      const auto value = static_cast<std::byte>(order.value);
      bool answer = true;
      if (order.what == 'f') {
        std::fill_n(begin, order.length, value);
      } else if (order.what == 'c') {
        answer =
            std::all_of(begin, begin + order.length, [value](std::byte b) { return b == value; });
      } else {
        answer = transport.RevokeAnnounced().has_value();
      }
      MC_CHECK(::write(socket, &answer, sizeof answer) == sizeof answer);
    }
  }

  pid_t pid_ = -1;
  int socket_ = -1;
  Facts facts_;
};

// Counts ends, from any thread.
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

class LocalTransportTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(transport_.Start());
    ASSERT_TRUE(regions_.Add(
        {.address = reinterpret_cast<std::uintptr_t>(registered_), .length_bytes = kBufferBytes}));
  }
  void TearDown() override {
    transport_.Stop();
    ::munmap(registered_, kBufferBytes);
    ::munmap(loose_, kBufferBytes);
  }

  Slice MakeSlice(Opcode opcode, std::byte* local, std::uint64_t remote, std::uint64_t length) {
    return {.local = local,
            .remote_address = remote,
            .length_bytes = length,
            .opcode = opcode,
            .sink = &sink_};
  }
  static std::vector<Slice*> Pointers(std::vector<Slice>& slices) {
    std::vector<Slice*> pointers;
    pointers.reserve(slices.size());
    for (Slice& slice : slices) {
      pointers.push_back(&slice);
    }
    return pointers;
  }
  void PostAndDrive(Endpoint& endpoint, std::vector<Slice>& slices) {
    const std::vector<Slice*> pointers = Pointers(slices);
    ASSERT_EQ(endpoint.Post(pointers), slices.size());
    while (endpoint.Drive()) {
    }
  }
  static bool All(const std::byte* begin, std::size_t length, int value) {
    return std::all_of(begin, begin + length,
                       [value](std::byte b) { return b == static_cast<std::byte>(value); });
  }

  RegionTable regions_;
  LocalTransport transport_{regions_};
  CountingSink sink_;
  std::byte* const registered_ = MapPrivate(kBufferBytes);
  std::byte* const loose_ = MapPrivate(kBufferBytes);  // Mapped, but not registered.
};

TEST_P(LocalTransportTest, MovesShortAndLongSlicesBothWaysForEveryKindOfMemory) {
  ChildPeer child({.vouched = GetParam()});
  auto endpoint = transport_.Connect(child.Describe());
  ASSERT_TRUE(endpoint) << endpoint.error().ToString();
  int value = 1;
  for (std::byte* const local : {registered_, loose_}) {
    for (const std::uint64_t remote : {child.private_address(), child.shared_address()}) {
      for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{4097}, kBufferBytes}) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        ++value;
        std::fill_n(local, length, static_cast<std::byte>(value));
        std::vector<Slice> write{MakeSlice(Opcode::kWrite, local, remote, length)};
        PostAndDrive(**endpoint, write);
        EXPECT_TRUE(child.Sees(remote, length, value));
        ++value;
        child.Fill(remote, length, value);
        std::vector<Slice> read{MakeSlice(Opcode::kRead, local, remote, length)};
        PostAndDrive(**endpoint, read);
        EXPECT_TRUE(All(local, length, value));
      }
    }
  }
  EXPECT_EQ(sink_.failed(), 0U);
}

TEST_P(LocalTransportTest, MovesManySmallSlicesOfMixedDirectionsInOnePost) {
  ChildPeer child({.vouched = GetParam()});
  auto endpoint = transport_.Connect(child.Describe());
  ASSERT_TRUE(endpoint);
  constexpr std::size_t kCount = 3000;  // More than one system call takes.
  constexpr std::size_t kLength = 300;
  child.Fill(child.private_address(), kBufferBytes, 7);
  std::fill_n(loose_, kBufferBytes, std::byte{9});
  std::vector<Slice> slices;
  slices.reserve(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    slices.push_back(MakeSlice(i / 100 % 2 == 0 ? Opcode::kRead : Opcode::kWrite, loose_ + i * 600,
                               child.private_address() + i * 900, kLength));
  }
  PostAndDrive(**endpoint, slices);
  EXPECT_EQ(sink_.done(), kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const bool read = slices[i].opcode == Opcode::kRead;
    EXPECT_TRUE(All(loose_ + i * 600, kLength, read ? 7 : 9));
    EXPECT_TRUE(child.Sees(child.private_address() + i * 900, kLength, read ? 7 : 9));
  }
}

TEST_P(LocalTransportTest, FailsExactlyTheSlicesWhoseMemoryIsNotThere) {
  ChildPeer child({.vouched = GetParam()});
  auto endpoint = transport_.Connect(child.Describe());
  ASSERT_TRUE(endpoint);
  std::byte* const hole = MapPrivate(4096);
  ::munmap(hole, 4096);
  for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
    std::vector<Slice> bad_local{
        MakeSlice(opcode, loose_, child.private_address(), 100),
        MakeSlice(opcode, hole, child.private_address(), 100),
        MakeSlice(opcode, loose_ + 200, child.private_address() + 200, 100)};
    PostAndDrive(**endpoint, bad_local);
    EXPECT_EQ(sink_.last().code, ErrorCode::kInvalidArgument) << sink_.last().ToString();
    EXPECT_THAT(sink_.last().message, HasSubstr("local memory"));
    std::vector<Slice> bad_remote{
        MakeSlice(opcode, loose_, 16, 100),
        MakeSlice(opcode, loose_ + 200, child.private_address() + 200, 100),
        MakeSlice(opcode, loose_ + 400, ~std::uint64_t{0} - 50, 100)};
    PostAndDrive(**endpoint, bad_remote);
    EXPECT_EQ(sink_.last().code, ErrorCode::kRejected) << sink_.last().ToString();
  }
  EXPECT_EQ(sink_.done(), 2U * (2 + 1));
  EXPECT_EQ(sink_.failed(), 2U * (1 + 2));
}

TEST_P(LocalTransportTest, DoesNotBelieveAnotherHostNamespaceProcessOrNonce) {
  ChildPeer child({.vouched = GetParam()});
  const auto refused = [this, &child](auto change) {
    auto descriptor = child.Describe();
    change(*descriptor->extension);
    auto endpoint = transport_.Connect(descriptor);
    ASSERT_FALSE(endpoint);
    EXPECT_EQ(endpoint.error().code, ErrorCode::kUnavailable) << endpoint.error().ToString();
  };
  refused([](PeerExtension& e) { e.host_id = "another"; });
  refused([](PeerExtension& e) { e.host_id = ""; });
  refused([](PeerExtension& e) { e.pid_namespace += 1; });
  refused([](PeerExtension& e) { e.nonce += 1; });
  refused([](PeerExtension& e) { e.nonce = 0; });
  refused([](PeerExtension& e) { e.nonce_address = 8; });
  refused([](PeerExtension& e) { e.pid = 0; });
  refused([](PeerExtension& e) { e.pid = ::getpid(); });
  auto none = child.Describe();
  none->extension.reset();
  EXPECT_FALSE(transport_.Connect(none));
}

TEST_P(LocalTransportTest, IgnoresAFileThatIsNotSealedOrNotTheBuffers) {
  for (const ChildPeer::Settings settings :
       {ChildPeer::Settings{.sealed = false, .vouched = GetParam()},
        ChildPeer::Settings{.wrong_fd = true, .vouched = GetParam()}}) {
    ChildPeer child(settings);
    auto endpoint = transport_.Connect(child.Describe());
    ASSERT_TRUE(endpoint);
    std::fill_n(registered_, 5000, std::byte{3});
    std::vector<Slice> write{MakeSlice(Opcode::kWrite, registered_, child.shared_address(), 5000)};
    PostAndDrive(**endpoint, write);
    EXPECT_TRUE(child.Sees(child.shared_address(), 5000, 3)) << "moved by process_vm instead";
  }
  EXPECT_EQ(sink_.failed(), 0U);
}

TEST_P(LocalTransportTest, AKilledPeerFailsEverySliceOnceAndNothingElse) {
  for (const bool shared : {true, false}) {
    const std::size_t ended_before = sink_.ended();
    ChildPeer child({.vouched = GetParam()});
    auto endpoint = transport_.Connect(child.Describe());
    ASSERT_TRUE(endpoint);
    const std::uint64_t remote = shared ? child.shared_address() : child.private_address();
    std::vector<Slice> slices;
    slices.reserve(64);
    for (std::uint64_t i = 0; i < 64; ++i) {
      slices.push_back(MakeSlice(i % 2 == 0 ? Opcode::kRead : Opcode::kWrite,
                                 registered_ + i * 0x20000, remote + i * 0x20000, 0x20000));
    }
    const std::vector<Slice*> pointers = Pointers(slices);
    ASSERT_EQ((*endpoint)->Post(pointers), slices.size());
    std::thread killer([&child] { ::kill(child.pid(), SIGKILL); });
    while ((*endpoint)->Drive()) {
    }
    killer.join();
    child.Kill();
    EXPECT_EQ(sink_.ended() - ended_before, slices.size());

    const std::size_t failed_before = sink_.failed();
    std::vector<Slice> after{MakeSlice(Opcode::kRead, registered_, remote, 64),
                             MakeSlice(Opcode::kWrite, registered_, remote, 64)};
    PostAndDrive(**endpoint, after);
    EXPECT_EQ(sink_.failed() - failed_before, 2U);
    EXPECT_EQ(sink_.last().code, ErrorCode::kUnavailable);
  }
}

// The initiator dies in the middle of a long copy; the peer must not notice.
TEST_P(LocalTransportTest, AKilledInitiatorLeavesThePeerUnharmed) {
  ChildPeer child({.vouched = GetParam()});
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t initiator = ::fork();
  if (initiator == 0) {
    RegionTable regions;
    LocalTransport transport(regions);
    MC_CHECK(transport.Start().has_value());
    auto endpoint = transport.Connect(child.Describe());
    MC_CHECK(endpoint.has_value());
    for (;;) {
      std::vector<Slice> slices{
          MakeSlice(Opcode::kWrite, loose_, child.private_address(), kBufferBytes),
          MakeSlice(Opcode::kWrite, loose_, child.shared_address(), kBufferBytes)};
      const std::vector<Slice*> pointers = Pointers(slices);
      MC_CHECK((*endpoint)->Post(pointers) == 2);
      while ((*endpoint)->Drive()) {
      }
      MC_CHECK(::write(pipe[1], "x", 1) == 1);
    }
  }
  std::array<char, 3> rounds{};
  ASSERT_EQ(::read(pipe[0], rounds.data(), 1), 1);
  ::kill(initiator, SIGKILL);
  ::waitpid(initiator, nullptr, 0);
  child.Fill(child.shared_address(), kBufferBytes, 5);
  EXPECT_TRUE(child.Sees(child.shared_address(), kBufferBytes, 5));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_P(LocalTransportTest, ARevokedDescriptorIsRefusedUntilItIsFetchedAgain) {
  ChildPeer child({.vouched = GetParam()});
  auto endpoint = transport_.Connect(child.Describe());
  ASSERT_TRUE(endpoint);
  child.Revoke();
  for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
    for (const std::uint64_t remote : {child.private_address(), child.shared_address()}) {
      std::vector<Slice> slices{MakeSlice(opcode, registered_, remote, 64)};
      PostAndDrive(**endpoint, slices);
    }
  }
  EXPECT_EQ(sink_.failed(), 4U);
  EXPECT_EQ(sink_.last().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(transport_.Connect(child.Describe())) << "the old descriptor";
}

TEST_P(LocalTransportTest, WhatNobodyDrivesIsFinishedAfterRelease) {
  ChildPeer child({.vouched = GetParam()});
  auto endpoint = transport_.Connect(child.Describe());
  ASSERT_TRUE(endpoint);
  std::fill_n(registered_, kBufferBytes, std::byte{4});
  std::vector<Slice> slices{
      MakeSlice(Opcode::kWrite, registered_, child.shared_address(), kBufferBytes),
      MakeSlice(Opcode::kWrite, registered_, child.private_address(), kBufferBytes)};
  ASSERT_EQ((*endpoint)->Post(Pointers(slices)), 2U);
  (*endpoint)->Release();
  EXPECT_TRUE(WaitUntil([&] { return sink_.ended() == 2; }));
  EXPECT_EQ(sink_.done(), 2U);
  EXPECT_TRUE(child.Sees(child.shared_address(), kBufferBytes, 4));
  EXPECT_TRUE(child.Sees(child.private_address(), kBufferBytes, 4));
}

TEST_P(LocalTransportTest, TalksToItsOwnProcessAlsoWithUnregisteredMemory) {
  auto self = std::make_shared<SegmentDescriptor>();
  transport_.Announce(*self);
  auto endpoint = transport_.Connect(self);
  ASSERT_TRUE(endpoint) << endpoint.error().ToString();
  std::fill_n(registered_, 100, std::byte{6});
  const auto remote = reinterpret_cast<std::uintptr_t>(registered_);
  std::byte* const hole = MapPrivate(4096);
  ::munmap(hole, 4096);
  std::vector<Slice> slices{MakeSlice(Opcode::kRead, registered_ + 500, remote, 100),
                            MakeSlice(Opcode::kRead, loose_, remote, 100),
                            MakeSlice(Opcode::kRead, hole, remote, 100)};
  PostAndDrive(**endpoint, slices);
  EXPECT_TRUE(All(registered_ + 500, 100, 6));
  EXPECT_TRUE(All(loose_, 100, 6));
  EXPECT_EQ(sink_.done(), 2U);
  EXPECT_EQ(sink_.failed(), 1U);
}

TEST_P(LocalTransportTest, AbortEndsEverySliceOnceWhileOthersPostAndDrive) {
  ChildPeer child({.vouched = GetParam()});
  auto connected = transport_.Connect(child.Describe());
  ASSERT_TRUE(connected);
  Endpoint& endpoint = **connected;
  std::atomic<std::size_t> taken = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t round = 0; round < 30; ++round) {
        std::vector<Slice> slices;
        slices.reserve(20);
        for (std::uint64_t i = 0; i < 20; ++i) {
          // Each slice has its own memory at both ends: what is tested is ours, not the caller's.
          const std::uint64_t offset = t * 0x200000 + i * 0x19000;
          slices.push_back(MakeSlice(Opcode::kRead, registered_ + offset,
                                     child.shared_address() + offset,
                                     round % 2 == 0 ? 0x19000 : 4096));
        }
        const std::vector<Slice*> pointers = Pointers(slices);
        const std::size_t ended_before = sink_.ended();
        const std::size_t count = endpoint.Post(pointers);
        taken += count;
        if (round % 5 == t) {
          endpoint.Abort({ErrorCode::kCancelled, "test"});
        }
        while (endpoint.Drive()) {
        }
        endpoint.Abort({ErrorCode::kCancelled, "the slices go out of scope"});
        EXPECT_GE(sink_.ended(), ended_before + count);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(sink_.ended(), taken.load());
}

TEST_P(LocalTransportTest, AStoppedTransportConnectsNoMoreAndAnnouncesNothing) {
  ChildPeer child({.vouched = GetParam()});
  transport_.Stop();
  transport_.Stop();
  EXPECT_FALSE(transport_.Connect(child.Describe()));
  SegmentDescriptor descriptor;
  transport_.Announce(descriptor);
  EXPECT_FALSE(descriptor.extension);
}

// Whether the peer is vouched for, or the kernel asked at each transfer.
TEST(LocalTransport, StaysOutWhereTheProcessCannotTellWhoItIs) {
  RegionTable regions;
  LocalTransport transport(
      regions, {.identity = [] { return Result<HostIdentity>(Fail(ErrorCode::kIo, "no /proc")); }});
  ASSERT_TRUE(transport.Start());
  const auto descriptor = std::make_shared<SegmentDescriptor>();
  transport.Announce(*descriptor);
  EXPECT_FALSE(descriptor->extension);
  descriptor->extension.emplace();
  EXPECT_EQ(transport.Connect(descriptor).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(transport.RevokeAnnounced());
  transport.Stop();
}

INSTANTIATE_TEST_SUITE_P(Vouched, LocalTransportTest, testing::Bool());

}  // namespace
}  // namespace mooncake::transfer
