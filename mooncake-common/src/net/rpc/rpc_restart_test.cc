// A server in another process that is killed without warning, and comes back on its port.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kEcho = 1;
constexpr std::uint16_t kNeverAnswers = 2;
constexpr const char* kPortVariable = "RPC_RESTART_TEST_PORT";

Instant Soon() { return SteadyClock::Get().Now() + std::chrono::seconds(60); }

// The other process is this program again, running only the "test" below.
class ServerProcess {
 public:
  explicit ServerProcess(std::uint16_t port) {
    const std::string variable = std::string(kPortVariable) + "=" + std::to_string(port);
    std::vector<char*> environment;
    for (char** each = environ; *each != nullptr; ++each) {
      environment.push_back(*each);
    }
    environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    std::array<std::string, 3> words{"rpc_restart_test",
                                     "--gtest_filter=OtherProcess.DISABLED_ServesUntilItIsKilled",
                                     "--gtest_also_run_disabled_tests"};
    std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, arguments.data(),
                          environment.data()),
              0);
  }
  ~ServerProcess() { Kill(); }
  void Kill() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      pid_ = 0;
    }
  }

 private:
  pid_t pid_ = 0;
};

TEST(OtherProcess, DISABLED_ServesUntilItIsKilled) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string text = getenv(kPortVariable);
  std::uint16_t port = 0;
  std::from_chars(text.data(), text.data() + text.size(), port);
  RpcServer server({.host = "127.0.0.1", .port = port});
  server.Register(kEcho, [](std::span<const std::byte> body, ReplyWriter& reply, const PeerInfo&) {
    reply.Append(body);
  });
  server.Register(kNeverAnswers, [](std::span<const std::byte>, ReplyWriter&, const PeerInfo&) {
    for (;;) {
      pause();
    }
  });
  ASSERT_TRUE(server.Start().has_value());
  for (;;) {
    pause();
  }
}

TEST(RpcRestart, AKilledServerFailsItsCallsAndIsUsedAgainWhenItIsBack) {
  std::uint16_t port = 0;
  {
    const UniqueFd probe = SocketListen("127.0.0.1", 0).value();
    port = LocalPort(probe.get()).value();
  }
  Reactor reactor;
  ASSERT_TRUE(reactor.Start().has_value());
  const auto client = RpcClient::Create(reactor, {.host = "127.0.0.1", .port = port}).value();
  RpcReply reply;
  const Instant limit = Soon();
  const auto call_until_served = [&] {
    for (;;) {
      const auto called = client->Call(kEcho, {}, Soon(), reply);
      if (called) {
        return;
      }
      ASSERT_EQ(called.error().code, ErrorCode::kUnavailable) << called.error().ToString();
      ASSERT_LT(SteadyClock::Get().Now(), limit);
      std::this_thread::yield();
    }
  };
  ServerProcess first(port);
  call_until_served();

  // One that waits itself, one that does not.
  Event started_ended;
  ErrorCode started_code = ErrorCode::kInternal;
  client->Start(kNeverAnswers, {}, Soon(), [&](Result<std::span<const std::byte>> answer) {
    started_code = answer ? ErrorCode::kInternal : answer.error().code;
    started_ended.Notify();
  });
  ErrorCode waited_code = ErrorCode::kInternal;
  std::jthread waiter([&] {
    RpcReply own;
    const auto called = client->Call(kNeverAnswers, {}, Soon(), own);
    waited_code = called ? ErrorCode::kInternal : called.error().code;
  });
  first.Kill();
  ASSERT_TRUE(started_ended.Wait(Soon()));
  waiter.join();
  EXPECT_EQ(started_code, ErrorCode::kUnavailable);
  EXPECT_EQ(waited_code, ErrorCode::kUnavailable);
  const auto refused = client->Call(kEcho, {}, Soon(), reply);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);

  const ServerProcess second(port);
  call_until_served();
}

}  // namespace
}  // namespace mooncake::rpc
