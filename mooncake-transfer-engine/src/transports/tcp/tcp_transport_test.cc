#include "mooncake-transfer-engine/src/transports/tcp/tcp_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/transports/tcp/tcp_format.h"
#include "mooncake-transfer-engine/src/transports/tcp/tcp_transport_fixture.h"

namespace mooncake::transfer {
namespace {

using namespace std::chrono_literals;

Bytes FromHex(std::string_view text) {
  Bytes bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ') {
      continue;
    }
    digits += c;
    if (digits.size() == 2) {
      bytes.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
      digits.clear();
    }
  }
  return bytes;
}

// What a peer that reads nothing leaves in the kernel's buffers has moved, too.
TEST_F(TcpTransportTest, CountsTheBytesOfAWriteThatIsStillUnderWay) {
  End client;
  const auto endpoint = client.transport.Connect(DescribeRaw(2)).value();
  Slice slice = MakeSlice(Opcode::kWrite, client.memory, 0x1000, kMemoryBytes);
  Slice* const posted = &slice;
  ASSERT_EQ(endpoint->Post(std::span(&posted, 1)), 1U);
  const RawSocket peer = AcceptRaw(*endpoint);
  EXPECT_TRUE(WaitUntil([&] {
    endpoint->Drive();
    return endpoint->MovedBytes() > 0;
  }));
  EXPECT_EQ(sink_.ended(), 0U);
  endpoint->Abort({ErrorCode::kCancelled, "the test is over"});
  EXPECT_EQ(sink_.failed(), 1U);
}

TEST_F(TcpTransportTest, CountsTheBytesOfAReadThatIsStillUnderWay) {
  End client;
  const auto endpoint = client.transport.Connect(DescribeRaw(2)).value();
  Slice slice = MakeSlice(Opcode::kRead, client.memory, 0x100000, 8);
  Slice* const posted = &slice;
  ASSERT_EQ(endpoint->Post(std::span(&posted, 1)), 1U);
  RawSocket peer = AcceptRaw(*endpoint);
  endpoint->Release();
  ASSERT_EQ(peer.Receive(24).size(), 24U);
  const Bytes answer = FromHex("00000000 5654434D 11121314");  // Half of what was asked for.
  peer.Send(answer);
  EXPECT_TRUE(WaitUntil([&] { return endpoint->MovedBytes() == 24 + answer.size(); }));
  EXPECT_EQ(sink_.ended(), 0U);
  endpoint->Abort({ErrorCode::kCancelled, "the test is over"});
  EXPECT_EQ(sink_.failed(), 1U);
}

// Transcript seen on the published package: its bytes, our server.
TEST_F(TcpTransportTest, ServesTheObservedTranscriptToAPlainSocket) {
  const End server;
  std::fill_n(server.memory, 64, std::byte{0x5A});
  Bytes head = FromHex("08 00000000000000 0000100000000000 80 00000000000000");
  const std::uint64_t address = server.address();
  std::memcpy(&head[8], &address, sizeof address);
  RawSocket socket = RawSocket::To(server.Describe()->tcp_data_port);
  for (const std::byte byte : head) {
    socket.Send(std::span(&byte, 1));  // Any arrival pattern.
  }
  EXPECT_EQ(socket.Receive(16), FromHex("00000000 5654434D 5A5A5A5A5A5A5A5A"));
  Bytes write = head;
  write[16] = std::byte{0x81};
  socket.Send(write);
  socket.Send(FromHex("0102030405060708"));
  EXPECT_EQ(socket.Receive(8), FromHex("00000000 5654434D"));
  EXPECT_EQ(server.memory[7], std::byte{8});

  const std::uint64_t elsewhere = 64;
  std::memcpy(&write[8], &elsewhere, sizeof elsewhere);
  socket.Send(write);
  EXPECT_EQ(socket.Receive(8), FromHex("01000000 5654434D"));
  EXPECT_TRUE(socket.IsClosed());
}

TEST_F(TcpTransportTest, TheConnectionThatIsIdleForLongestMakesRoomWhenThereAreTooMany) {
  const End server({.max_connections = 2});
  Bytes read = FromHex("08 00000000000000 0000100000000000 80 00000000000000");
  const std::uint64_t address = server.address();
  std::memcpy(&read[8], &address, sizeof address);
  const auto is_served = [&read](RawSocket& socket) {
    socket.Send(read);
    return socket.Receive(16).size() == 16;
  };
  const std::uint16_t port = server.Describe()->tcp_data_port;
  RawSocket first = RawSocket::To(port);
  EXPECT_TRUE(is_served(first));
  RawSocket second = RawSocket::To(port);
  EXPECT_TRUE(is_served(second));
  EXPECT_TRUE(is_served(first));
  RawSocket third = RawSocket::To(port);
  EXPECT_TRUE(is_served(third));
  EXPECT_TRUE(second.IsClosed());
  EXPECT_TRUE(is_served(first));
}

// The other direction: what our client says to a peer that speaks v2.
TEST_F(TcpTransportTest, AsksAV2PeerByTheObservedBytes) {
  End client;
  auto endpoint = client.transport.Connect(DescribeRaw(2)).value();
  std::vector<Slice> slices{MakeSlice(Opcode::kRead, client.memory, 0x100000, 8),
                            MakeSlice(Opcode::kWrite, client.memory + 100, 0x200000, 4)};
  std::fill_n(client.memory + 100, 4, std::byte{0x77});
  std::array<Slice*, 2> pointers{&slices[0], &slices[1]};
  ASSERT_EQ(endpoint->Post(pointers), 2U);
  RawSocket peer = AcceptRaw(*endpoint);
  endpoint->Release();
  EXPECT_EQ(peer.Receive(52), FromHex("0800000000000000 0000100000000000 8000000000000000"
                                      "0400000000000000 0000200000000000 8100000000000000"
                                      "77777777"));
  EXPECT_EQ(sink_.ended(), 0U);
  peer.Send(FromHex("00000000 5654434D 1112131415161718"));
  peer.Send(FromHex("00000000 5654434D"));
  ASSERT_TRUE(WaitUntil([&] { return sink_.ended() == 2; }));
  EXPECT_EQ(sink_.done(), 2U);
  EXPECT_EQ(client.memory[7], std::byte{0x18});
}

TEST_F(TcpTransportTest, ARefusalByAV2PeerFailsOnlyItsSlice) {
  for (const bool own_server : {false, true}) {
    End client;
    End server({.use_extension = !own_server});
    auto endpoint = client.transport.Connect(server.Describe()).value();
    std::vector<Slice> slices;
    for (std::uint64_t i = 0; i < 100; ++i) {
      slices.push_back(MakeSlice(i % 2 == 0 ? Opcode::kRead : Opcode::kWrite,
                                 client.memory + i * 4096,
                                 i == 33 || i == 66 ? 4096 : server.address() + i * 4096, 4096));
    }
    const std::size_t failed_before = sink_.failed();
    Run(*endpoint, slices);
    EXPECT_EQ(sink_.failed() - failed_before, 2U);
  }
  EXPECT_EQ(sink_.last().code, ErrorCode::kRejected);
}

TEST_F(TcpTransportTest, ARefusalByAV1PeerFailsOnlyItsSlice) {
  End client({.force_v1 = true});
  const End server;
  auto endpoint = client.transport.Connect(server.Describe()).value();
  std::vector<Slice> slices;
  for (std::uint64_t i = 0; i < 20; ++i) {
    slices.push_back(MakeSlice(Opcode::kWrite, client.memory + i * 64,
                               i == 7 ? 4096 : server.address() + i * 64, 64));
  }
  Run(*endpoint, slices);
  EXPECT_EQ(sink_.failed(), 1U);
  EXPECT_EQ(sink_.last().code, ErrorCode::kUnavailable);
}

TEST_F(TcpTransportTest, UnmappedLocalMemoryFailsItsSliceAlone) {
  End client;
  End server;
  std::byte* const hole = Map(1 << 20);
  ::munmap(hole, 1 << 20);
  for (const bool extended : {true, false}) {
    auto descriptor = server.Describe();
    if (!extended) {
      descriptor->extension.reset();
    }
    auto endpoint = client.transport.Connect(descriptor).value();
    for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
      for (const std::uint64_t length : {100U, 100'000U}) {
        const std::size_t failed_before = sink_.failed();
        std::vector<Slice> slices;
        for (std::uint64_t i = 0; i < 9; ++i) {
          slices.push_back(MakeSlice(opcode, i % 4 == 2 ? hole : client.memory + i * length,
                                     server.address() + i * length, length));
        }
        Run(*endpoint, slices);
        EXPECT_EQ(sink_.failed() - failed_before, 2U);
        EXPECT_EQ(sink_.last().code, ErrorCode::kInvalidArgument) << sink_.last().ToString();
      }
    }
  }
}

TEST_F(TcpTransportTest, AConnectionLostWhileIdleIsOpenedAgainWithoutAFailure) {
  End client;
  const std::string host = OwnLoopbackHost();
  auto server = std::make_unique<End>(TcpTransportOptions{.listen_host = host});
  auto descriptor = server->Describe();
  auto endpoint = client.transport.Connect(descriptor).value();
  std::vector<Slice> once{MakeSlice(Opcode::kRead, client.memory, server->address(), 100)};
  Run(*endpoint, once);
  endpoint->Release();

  // Another server on the same port: every old connection is dead.
  const std::uint16_t port = descriptor->tcp_data_port;
  server->transport.Stop();
  TcpTransport again(server->reactor, server->regions, Rng(2),
                     {.listen_host = host, .ports = {.min = port, .max = port}});
  ASSERT_TRUE(again.Start());
  std::vector<Slice> twice{MakeSlice(Opcode::kRead, client.memory, server->address(), 100)};
  Run(*endpoint, twice);
  EXPECT_EQ(sink_.failed(), 0U) << sink_.last().ToString();
  again.Stop();
}

// A user's report: after idling, transfers met one dead connection after the other, and failed.
TEST_F(TcpTransportTest, SeveralConnectionsLostWhileIdleFailNoSlice) {
  End client({.bytes_per_lane = kMemoryBytes / 8});
  const std::string host = OwnLoopbackHost();
  End peer({.listen_host = host});
  const auto descriptor = peer.Describe();
  peer.transport.Stop();
  const std::uint16_t port = descriptor->tcp_data_port;
  const auto endpoint = client.transport.Connect(descriptor).value();
  constexpr std::uint64_t kSlices = 256;  // More than one connection takes at once.
  constexpr std::uint64_t kSliceBytes = kMemoryBytes / kSlices;
  for (int round = 0; round < 20; ++round) {
    // Another server on the same port: every connection of the round before is dead.
    TcpTransport server(peer.reactor, peer.regions, Rng(2),
                        {.listen_host = host, .ports = {.min = port, .max = port}});
    ASSERT_TRUE(server.Start());
    std::vector<Slice> slices;
    for (std::uint64_t offset = 0; offset < kMemoryBytes; offset += kSliceBytes) {
      const Opcode opcode = slices.size() % 2 == 0 ? Opcode::kRead : Opcode::kWrite;
      slices.push_back(
          MakeSlice(opcode, client.memory + offset, peer.address() + offset, kSliceBytes));
    }
    Run(*endpoint, slices);
    endpoint->Release();
    server.Stop();
    ASSERT_EQ(sink_.failed(), 0U) << "round " << round << ": " << sink_.last().ToString();
  }
}

TEST_F(TcpTransportTest, APeerThatIsNotThereFailsAllAtOnce) {
  End client;
  const RefusingPort refusing;
  auto descriptor = DescribeRaw(2);
  descriptor->tcp_data_port = refusing.port();
  auto endpoint = client.transport.Connect(descriptor).value();
  std::vector<Slice> slices(10, MakeSlice(Opcode::kRead, client.memory, 4096, 64));
  Run(*endpoint, slices);
  EXPECT_EQ(sink_.failed(), 10U);
  EXPECT_EQ(sink_.last().code, ErrorCode::kUnavailable);
}

// A name server that knows one name. Lookups outlive their askers, so it is told by value.
NameLookup Knows(const Addresses& addresses) {
  return [addresses](const std::string& /*host*/, std::uint16_t /*port*/) -> Result<Addresses> {
    return addresses;
  };
}

TEST_F(TcpTransportTest, ReachesAPeerByAnyOfItsAddresses) {
  const RefusingPort refusing;
  End server;
  auto descriptor = server.Describe();
  descriptor->tcp_data_host = "peer.example";
  const SocketAddress good = ResolveAddress("127.0.0.1", descriptor->tcp_data_port).value();
  for (const Addresses& addresses : {Addresses{refusing.address(), refusing.address(), good},
                                     Addresses{refusing.address(), good, refusing.address()},
                                     Addresses{good, refusing.address()}}) {
    End client({.lookup = Knows(addresses), .bytes_per_lane = 4096});
    auto endpoint = client.transport.Connect(descriptor).value();
    std::vector<Slice> slices(10, MakeSlice(Opcode::kRead, client.memory, server.address(), 4096));
    Run(*endpoint, slices);
    EXPECT_EQ(sink_.failed(), 0U) << sink_.last().ToString();
  }
}

TEST_F(TcpTransportTest, APeerFailsOnlyWhenNoneOfItsAddressesIsReached) {
  const RefusingPort first;
  const RefusingPort last;
  auto descriptor = DescribeRaw(2);
  descriptor->tcp_data_host = "peer.example";
  End client({.lookup = Knows({first.address(), last.address()})});
  auto endpoint = client.transport.Connect(descriptor).value();
  std::vector<Slice> slices(10, MakeSlice(Opcode::kRead, client.memory, 4096, 64));
  Run(*endpoint, slices);
  EXPECT_EQ(sink_.failed(), 10U);
  EXPECT_EQ(sink_.last().code, ErrorCode::kUnavailable);
  EXPECT_THAT(sink_.last().message, testing::HasSubstr(last.address().ToString()));
}

TEST_F(TcpTransportTest, ASilentPeerIsGivenUpByAbortAndNothingArrivesAfterIt) {
  End client;
  auto endpoint = client.transport.Connect(DescribeRaw(2)).value();
  std::vector<Slice> slices(3, MakeSlice(Opcode::kRead, client.memory, 4096, 64));
  std::array<Slice*, 3> pointers{&slices[0], &slices[1], &slices[2]};
  ASSERT_EQ(endpoint->Post(pointers), 3U);
  RawSocket peer = AcceptRaw(*endpoint);
  endpoint->Abort({ErrorCode::kTimeout, "silent"});
  EXPECT_EQ(sink_.failed(), 3U);
  EXPECT_EQ(sink_.last().code, ErrorCode::kTimeout);
  const auto answer = EncodeTcpStatus(true);
  peer.Send(answer);
  EXPECT_EQ(client.memory[0], std::byte{0});
}

TEST_F(TcpTransportTest, NonsenseFromAPeerFailsWhatWasAskedAndNothingElse) {
  for (const bool extended : {true, false}) {
    End client;
    auto descriptor = DescribeRaw(2);
    if (extended) {
      descriptor->extension.emplace().tcp_extension_version = 1;
    }
    auto endpoint = client.transport.Connect(descriptor).value();
    const std::size_t goal = sink_.ended() + 1;
    std::vector<Slice> slices(1, MakeSlice(Opcode::kRead, client.memory, 4096, 64));
    Slice* pointer = slices.data();
    ASSERT_EQ(endpoint->Post(std::span(&pointer, 1)), 1U);
    for (int attempt = 0; attempt < 2; ++attempt) {  // It is asked twice before it fails.
      RawSocket peer = AcceptRaw(*endpoint);
      peer.Send(Bytes(200, std::byte{0xEE}));
      ASSERT_TRUE(WaitUntil([&] {
        endpoint->Drive();
        return attempt == 0 || sink_.ended() == goal;
      }));
    }
    EXPECT_EQ(sink_.last().code, ErrorCode::kMalformed) << sink_.last().ToString();
  }
}

TEST_F(TcpTransportTest, ASlowReaderDoesNotStallOthers) {
  End client;
  const End server;
  std::vector<RawSocket> slow;
  Bytes request;
  const auto head =
      EncodeTcpRequest({.protocol = TcpProtocol::kV2,
                        .extent = {.address = server.address(), .length_bytes = kMemoryBytes}});
  for (int i = 0; i < 10; ++i) {
    request.insert(request.end(), head.begin(), head.end());
  }
  slow.reserve(8);
  for (int i = 0; i < 8; ++i) {
    slow.push_back(RawSocket::To(server.Describe()->tcp_data_port));
    slow.back().Send(request);
  }
  auto endpoint = client.transport.Connect(server.Describe()).value();
  for (int round = 0; round < 20; ++round) {
    std::vector<Slice> slices{
        MakeSlice(Opcode::kRead, client.memory, server.address(), 100'000),
        MakeSlice(Opcode::kWrite, client.memory, server.address() + 200'000, 100'000)};
    Run(*endpoint, slices);
  }
  EXPECT_EQ(sink_.done(), 40U);
  EXPECT_EQ(slow[0].Receive(8), FromHex("00000000 5654434D"));
}

TEST_F(TcpTransportTest, AQueueWithoutRoomTakesLessAndRefusesNothing) {
  End client({.max_queued_bytes = 100'000});
  const End server;
  auto endpoint = client.transport.Connect(server.Describe()).value();
  std::vector<Slice> slices(500,
                            MakeSlice(Opcode::kWrite, client.memory, server.address(), 10'000));
  std::vector<Slice*> pointers;
  pointers.reserve(slices.size());
  for (Slice& slice : slices) {
    pointers.push_back(&slice);
  }
  EXPECT_LE(endpoint->Post(pointers), 11U);
  ASSERT_TRUE(WaitUntil([&] {
    endpoint->Drive();
    return sink_.ended() > 0;
  }));
  endpoint->Abort({ErrorCode::kCancelled, "enough"});
  std::vector<Slice> all(500, MakeSlice(Opcode::kWrite, client.memory, server.address(), 10'000));
  const std::size_t failed_before = sink_.failed();
  Run(*endpoint, all);
  EXPECT_EQ(sink_.failed(), failed_before);
}

// A process that serves until it is killed, or asks without end.
pid_t Fork(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  MC_CHECK(pid >= 0);
  if (pid == 0) {
    body();
    ::_exit(0);
  }
  return pid;
}

void Kill(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST_F(TcpTransportTest, APeerKilledInTheMiddleFailsEverySliceOnce) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  struct Facts {
    std::uint64_t address;
    std::uint16_t port;
  } facts{};
  const pid_t pid = Fork([&] {
    const End server;
    const Facts own{.address = server.address(), .port = server.Describe()->tcp_data_port};
    MC_CHECK(::write(pipe[1], &own, sizeof own) == sizeof own);
    ::pause();
  });
  ASSERT_EQ(::read(pipe[0], &facts, sizeof facts), static_cast<ssize_t>(sizeof facts));
  End client;
  auto descriptor = client.Describe();
  descriptor->tcp_data_port = facts.port;
  auto endpoint = client.transport.Connect(descriptor).value();
  std::vector<Slice> first{MakeSlice(Opcode::kRead, client.memory, facts.address, 1000)};
  Run(*endpoint, first);
  EXPECT_EQ(sink_.done(), 1U);
  std::vector<Slice> slices;
  for (std::uint64_t i = 0; i < 64; ++i) {
    slices.push_back(MakeSlice(i % 2 == 0 ? Opcode::kRead : Opcode::kWrite,
                               client.memory + i * 0x20000, facts.address + i * 0x20000, 0x20000));
  }
  std::vector<Slice*> pointers;
  pointers.reserve(slices.size());
  for (Slice& slice : slices) {
    pointers.push_back(&slice);
  }
  // The first half may be answered, by chance; the second finds a peer that does nothing any more.
  const auto half = static_cast<std::ptrdiff_t>(pointers.size() / 2);
  ASSERT_EQ(endpoint->Post(std::span(pointers).first(half)), static_cast<std::size_t>(half));
  endpoint->Drive();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  ASSERT_EQ(::waitpid(pid, nullptr, WUNTRACED), pid);
  ASSERT_EQ(endpoint->Post(std::span(pointers).subspan(half)), static_cast<std::size_t>(half));
  endpoint->Drive();
  Kill(pid);
  ASSERT_TRUE(WaitUntil([&] {
    endpoint->Drive();
    return sink_.ended() == 1 + slices.size();
  }));
  EXPECT_GE(sink_.failed(), static_cast<std::size_t>(half));
  EXPECT_EQ(sink_.last().code, ErrorCode::kUnavailable);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(TcpTransportTest, AnInitiatorKilledInTheMiddleLeavesTheServerServing) {
  std::array<int, 2> to_child{};
  std::array<int, 2> from_child{};
  ASSERT_EQ(::pipe(to_child.data()), 0);
  ASSERT_EQ(::pipe(from_child.data()), 0);
  struct Facts {
    std::uint64_t address;
    std::uint16_t port;
  };
  // Forked before this process has threads.
  const pid_t pid = Fork([&] {
    Facts facts{};
    MC_CHECK(::read(to_child[0], &facts, sizeof facts) == sizeof facts);
    End client;
    auto descriptor = client.Describe();
    descriptor->tcp_data_port = facts.port;
    auto endpoint = client.transport.Connect(descriptor).value();
    for (;;) {
      std::vector<Slice> slices{
          MakeSlice(Opcode::kWrite, client.memory, facts.address, kMemoryBytes)};
      Run(*endpoint, slices);
      MC_CHECK(::write(from_child[1], "x", 1) == 1);
    }
  });
  End server;
  const Facts facts{.address = server.address(), .port = server.Describe()->tcp_data_port};
  ASSERT_EQ(::write(to_child[1], &facts, sizeof facts), static_cast<ssize_t>(sizeof facts));
  char byte = 0;
  ASSERT_EQ(::read(from_child[0], &byte, 1), 1);
  Kill(pid);
  auto endpoint = server.transport.Connect(server.Describe()).value();
  // Into memory of its own: what the dead one had sent may still arrive in the server's.
  std::array<std::byte, 64> copy{};
  std::vector<Slice> slices{
      MakeSlice(Opcode::kRead, copy.data(), server.address() + 4096, copy.size())};
  Run(*endpoint, slices);
  EXPECT_EQ(sink_.done(), 1U);
  // What the dead one left half done keeps nothing registered.
  EXPECT_TRUE(server.regions.Remove(server.address(), kHangLimit));
  for (const int fd : {to_child[0], to_child[1], from_child[0], from_child[1]}) {
    ::close(fd);
  }
}

TEST_F(TcpTransportTest, StopEndsEverythingAndConnectsNoMore) {
  End client;
  const End server;
  auto endpoint = client.transport.Connect(server.Describe()).value();
  std::vector<Slice> slices(50, MakeSlice(Opcode::kRead, client.memory, server.address(), 50'000));
  std::vector<Slice*> pointers;
  pointers.reserve(slices.size());
  for (Slice& slice : slices) {
    pointers.push_back(&slice);
  }
  const std::size_t taken = endpoint->Post(pointers);
  client.transport.Stop();
  client.transport.Stop();
  EXPECT_EQ(sink_.ended(), taken);
  EXPECT_FALSE(client.transport.Connect(server.Describe()));
}

}  // namespace
}  // namespace mooncake::transfer
