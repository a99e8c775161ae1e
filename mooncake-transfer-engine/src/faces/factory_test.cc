#include "mooncake-transfer-engine/include/mooncake/transfer/factory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::transfer {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Engine> Make() {
  auto engine = CreateEngine({.local_name = "127.0.0.1", .metadata = "P2PHANDSHAKE"});
  EXPECT_TRUE(engine) << engine.error().ToString();
  return engine ? std::move(*engine) : nullptr;
}

// Goal: two engines that only share a name reach each other's memory, of both kinds, both ways.
TEST(Factory, TwoEnginesOfOneHostReachEachOther) {
  const auto a = Make();
  const auto b = Make();
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->rpc_port(), 0);
  std::vector<std::byte> ours(1U << 20U);
  std::vector<std::byte> ordinary(1U << 20U, std::byte{5});
  auto* managed = static_cast<std::byte*>(b->AllocateManaged(1U << 20U).value());
  std::memset(managed, 6, 1U << 20U);
  const MemoryRegistration there{.address = ordinary.data(), .length_bytes = ordinary.size()};
  ASSERT_TRUE(b->RegisterMemory(std::span(&there, 1)));
  const MemoryRegistration here{.address = ours.data(), .length_bytes = ours.size()};
  ASSERT_TRUE(a->RegisterMemory(std::span(&here, 1)));
  const SegmentId peer = a->OpenSegment(b->name()).value();
  for (std::byte* remote : {ordinary.data(), managed}) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 20U}) {
      const TransferRequest request{.opcode = Opcode::kRead,
                                    .local = ours.data(),
                                    .segment = peer,
                                    .remote_address = reinterpret_cast<std::uint64_t>(remote),
                                    .length_bytes = size};
      const auto read = a->Transfer(std::array{request}, kHangLimit);
      ASSERT_TRUE(read) << read.error().ToString();
      EXPECT_EQ(0, std::memcmp(ours.data(), remote, size));
    }
    std::fill(ours.begin(), ours.end(), std::byte{9});
    const TransferRequest write{.opcode = Opcode::kWrite,
                                .local = ours.data(),
                                .segment = peer,
                                .remote_address = reinterpret_cast<std::uint64_t>(remote),
                                .length_bytes = 1000};
    ASSERT_TRUE(a->Transfer(std::array{write}, kHangLimit));
    EXPECT_EQ(remote[999], std::byte{9});
  }
  ASSERT_TRUE(a->ProbePeer(b->name()));
  ASSERT_TRUE(a->SendNotify(peer, {.name = "n", .message = "m"}));
  EXPECT_EQ(b->TakeNotifies().size(), 1U);
}

TEST(Factory, MemoryThatWasUnregisteredIsOutOfReachAtOnce) {
  const auto a = Make();
  const auto b = Make();
  ASSERT_TRUE(a && b);
  std::vector<std::byte> ours(4096);
  std::vector<std::byte> theirs(4096);
  std::vector<std::byte> other(4096, std::byte{3});
  const std::array there = {
      MemoryRegistration{.address = theirs.data(), .length_bytes = theirs.size()},
      MemoryRegistration{.address = other.data(), .length_bytes = other.size()}};
  ASSERT_TRUE(b->RegisterMemory(there));
  TransferRequest request{.opcode = Opcode::kWrite,
                          .local = ours.data(),
                          .segment = a->OpenSegment(b->name()).value(),
                          .remote_address = reinterpret_cast<std::uint64_t>(theirs.data()),
                          .length_bytes = 4096};
  ASSERT_TRUE(a->Transfer(std::array{request}, kHangLimit));
  void* const gone = theirs.data();
  ASSERT_TRUE(b->UnregisterMemory(std::span(&gone, 1)));
  std::fill(ours.begin(), ours.end(), std::byte{1});
  EXPECT_FALSE(a->Transfer(std::array{request}, kHangLimit));
  EXPECT_EQ(theirs[0], std::byte{0});
  request.remote_address = reinterpret_cast<std::uint64_t>(other.data());
  EXPECT_TRUE(a->Transfer(std::array{request}, kHangLimit)) << "the rest is still there";
}

using Variables = std::map<std::string, std::string>;

// Variables that are set as long as this lives.
class Environment {
 public:
  explicit Environment(Variables values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : values_) {
      ::unsetenv(name.c_str());
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const Variables values_;
};

TEST(Factory, NamesTheVariableThatIsMalformed) {
  for (const std::string name :
       {"MC_ENFORCE_REMOTE_ACCESSIBLE", "MC_LOG_LEVEL", "MC_TRANSFER_TIMEOUT"}) {
    const Environment environment(Variables{{name, "soon"}});
    const auto engine = CreateEngine({.local_name = "127.0.0.1", .metadata = "P2PHANDSHAKE"});
    ASSERT_FALSE(engine) << name;
    EXPECT_NE(engine.error().message.find(name), std::string::npos) << engine.error().message;
  }
}

// Goal: MC_ENFORCE_REMOTE_ACCESSIBLE protects the memory of the engine that has it, whatever those
// of its peers do. Method: a peer that looks at nothing asks in the published and in our own way.
TEST(Factory, KeepsPeersOutOfMemoryThatWasNotRegisteredForThem) {
  std::vector<std::byte> ours(4096);
  std::vector<std::byte> hidden(4096);
  const MemoryRegistration memory{
      .address = hidden.data(), .length_bytes = hidden.size(), .remote_accessible = false};
  for (const auto& [setting, open_to_published, open_to_ours] :
       {std::tuple{"1", false, false}, std::tuple{"auto", true, false},
        std::tuple{"0", true, true}}) {
    std::unique_ptr<Engine> owner;
    {
      const Environment environment(Variables{{"MC_ENFORCE_REMOTE_ACCESSIBLE", setting}});
      owner = Make();
    }
    ASSERT_TRUE(owner && owner->RegisterMemory(std::span(&memory, 1)));
    for (const auto& [protocol, open] :
         {std::pair{"1", open_to_published}, std::pair{"2", open_to_ours}}) {
      const Environment environment(Variables{{"MC_ENFORCE_REMOTE_ACCESSIBLE", "0"},
                                              {"MC_FORCE_TCP", "1"},
                                              {"MC_TCP_PROTO", protocol}});
      const auto peer = Make();
      ASSERT_TRUE(peer);
      const TransferRequest write{.opcode = Opcode::kWrite,
                                  .local = ours.data(),
                                  .segment = peer->OpenSegment(owner->name()).value(),
                                  .remote_address = reinterpret_cast<std::uint64_t>(hidden.data()),
                                  .length_bytes = hidden.size()};
      std::ranges::fill(ours, std::byte{1});
      std::ranges::fill(hidden, std::byte{0});
      EXPECT_EQ(peer->Transfer(std::array{write}, kHangLimit).has_value(), open)
          << setting << " " << protocol;
      EXPECT_EQ(hidden.back(), open ? std::byte{1} : std::byte{0});
    }
  }
}

TEST(Factory, LetsTheProcessOpenAsManyDescriptorsAsItMay) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto engine = Make();
  rlimit now{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// Goal: the port that the user names is that of handshakes, and only of those: the data port is
// another one.
TEST(Factory, ListensOnTheNamedPortWhenToldTo) {
  ::setenv("MC_LEGACY_RPC_PORT_BINDING", "1", 1);
  std::uint16_t port = 0;
  Result<std::unique_ptr<Engine>> named = Fail(ErrorCode::kInternal, "not tried");
  // A port that is given up for the engine may be somebody else's by then; so another is tried.
  const bool listens = WaitUntil([&] {
    port = LocalPort(SocketListen("", 0)->get()).value();
    named = CreateEngine({.local_name = FormatHostPort("127.0.0.1", port),
                          .metadata = "P2PHANDSHAKE",
                          .rpc_port = 1});
    return named.has_value();
  });
  const auto taken =
      CreateEngine({.local_name = "127.0.0.1", .metadata = "P2PHANDSHAKE", .rpc_port = port});
  const auto wrong =
      CreateEngine({.local_name = "127.0.0.1", .metadata = "P2PHANDSHAKE", .rpc_port = 65536});
  ::unsetenv("MC_LEGACY_RPC_PORT_BINDING");
  ASSERT_TRUE(listens) << named.error().ToString();
  EXPECT_EQ((*named)->rpc_port(), port);
  EXPECT_TRUE((*named)->ProbePeer((*named)->name()));
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("MC_LEGACY_RPC_PORT_BINDING"), std::string::npos)
      << taken.error().ToString();
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace mooncake::transfer
