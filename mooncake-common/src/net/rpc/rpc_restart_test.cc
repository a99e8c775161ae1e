// A server in another process that is killed without warning, and comes back on its port.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::rpc {
namespace {

constexpr std::uint16_t kEcho = 1;
constexpr std::uint16_t kNeverAnswers = 2;
constexpr std::uint16_t kPort = 20000;
constexpr const char* kHostVariable = "RPC_RESTART_TEST_HOST";

// The other process is this program again, running only the "test" below.
class ServerProcess {
 public:
  explicit ServerProcess(const std::string& host) {
    const std::string variable = std::string(kHostVariable) + "=" + host;
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
  const char* const host = getenv(kHostVariable);
  ASSERT_NE(host, nullptr) << "only the test below starts this one";
  RpcServer server({.host = host, .port = kPort});
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
  const std::string host = OwnLoopbackHost();
  Reactor reactor;
  ASSERT_TRUE(reactor.Start().has_value());
  const auto client = RpcClient::Create(reactor, {.host = host, .port = kPort}).value();
  RpcReply reply;
  const auto is_served = [&] {
    const auto called = client->Call(kEcho, {}, HangDeadline(), reply);
    EXPECT_TRUE(called || called.error().code == ErrorCode::kUnavailable)
        << called.error().ToString();
    return called.has_value();
  };
  ServerProcess first(host);
  ASSERT_TRUE(WaitUntil(is_served));

  // One that waits itself, one that does not.
  Event started_ended;
  ErrorCode started_code = ErrorCode::kInternal;
  client->Start(kNeverAnswers, {}, HangDeadline(), [&](Result<std::span<const std::byte>> answer) {
    started_code = answer ? ErrorCode::kInternal : answer.error().code;
    started_ended.Notify();
  });
  ErrorCode waited_code = ErrorCode::kInternal;
  std::jthread waiter([&] {
    RpcReply own;
    const auto called = client->Call(kNeverAnswers, {}, HangDeadline(), own);
    waited_code = called ? ErrorCode::kInternal : called.error().code;
  });
  first.Kill();
  ASSERT_TRUE(started_ended.Wait(HangDeadline()));
  waiter.join();
  EXPECT_EQ(started_code, ErrorCode::kUnavailable);
  EXPECT_EQ(waited_code, ErrorCode::kUnavailable);
  const auto refused = client->Call(kEcho, {}, HangDeadline(), reply);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);

  const ServerProcess second(host);
  EXPECT_TRUE(WaitUntil(is_served));
}

}  // namespace
}  // namespace mooncake::rpc
