#include "mooncake-common/src/net/acceptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <future>
#include <string>
#include <system_error>
#include <vector>

#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

// Takes all descriptors from this process: those it has keep working, new ones are refused.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    // The sanitizer of virtual calls opens a pipe when it meets a kind of object for the first
    // time. Those that are met while there are no descriptors are met here.
    MC_LOG_WARNING("from now on: {}", std::system_category().message(EMFILE));
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const UniqueFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next.get()), .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptorsLeft() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;

 private:
  rlimit before_{};
};

class AcceptorTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().has_value()); }

  UniqueFd Listen() {
    UniqueFd listener = SocketListen(host_, 0).value();
    address_ = ResolveAddress(host_, LocalPort(listener.get()).value()).value();
    return listener;
  }
  UniqueFd Dial() { return SocketConnect(address_).value(); }

  const std::string host_ = OwnLoopbackHost();  // Nobody takes a port that was closed there.
  Reactor reactor_;
  SocketAddress address_;
};

TEST_F(AcceptorTest, HandsOverEachConnectionWithThePeerAddress) {
  constexpr std::size_t kConnections = 200;  // More than one turn takes.
  std::vector<UniqueFd> taken;
  std::promise<void> all;
  Acceptor acceptor(reactor_, "test");
  ASSERT_TRUE(acceptor
                  .Start(Listen(),
                         [&](UniqueFd connection, const SocketAddress& peer) {
                           EXPECT_TRUE(reactor_.InReactorThread());
                           EXPECT_EQ(peer.ToString(), PeerText(connection.get()));
                           taken.push_back(std::move(connection));
                           if (taken.size() == kConnections) {
                             all.set_value();
                           }
                         })
                  .has_value());
  std::vector<UniqueFd> dialled;
  for (std::size_t i = 0; i < kConnections; ++i) {
    dialled.push_back(Dial());
  }
  ASSERT_EQ(all.get_future().wait_for(kHangLimit), std::future_status::ready);
  EXPECT_EQ(acceptor.pauses(), 0U);
}

// Goal: without descriptors nothing is lost and nothing spins. Method: a connection comes while
// there are none; the acceptor must look away from it, its reactor must get to sleep although the
// listener stays ready, and the connection must be taken once descriptors are back.
TEST_F(AcceptorTest, SitsOutAShortageOfDescriptorsWithoutSpinning) {
  std::promise<UniqueFd> taken;
  Acceptor acceptor(reactor_, "test");
  UniqueFd listener = Listen();
  const UniqueFd dialled = Dial();
  {
    const NoDescriptorsLeft none;
    ASSERT_TRUE(acceptor
                    .Start(std::move(listener),
                           [&](UniqueFd connection, const SocketAddress&) {
                             taken.set_value(std::move(connection));
                           })
                    .has_value());
    ASSERT_TRUE(WaitUntil([&] { return acceptor.pauses() > 0; }));
    const std::uint64_t pauses = acceptor.pauses();
    const std::uint64_t sleeps = reactor_.sleeps();
    ASSERT_TRUE(WaitUntil(
        [&] { return reactor_.sleeps() != sleeps || acceptor.pauses() >= pauses + 1000; }));
    EXPECT_LT(acceptor.pauses(), pauses + 1000) << "it tries all the time and never sleeps";
  }
  auto connection = taken.get_future();
  ASSERT_EQ(connection.wait_for(kHangLimit), std::future_status::ready);
  EXPECT_TRUE(connection.get());
}

TEST_F(AcceptorTest, RefusesConnectionsOnceStopped) {
  bool called = false;
  Acceptor acceptor(reactor_, "test");
  ASSERT_TRUE(
      acceptor.Start(Listen(), [&](UniqueFd, const SocketAddress&) { called = true; }).has_value());
  acceptor.Stop();
  acceptor.Stop();
  const UniqueFd dialled = Dial();
  std::array<std::byte, 1> byte{};
  IoOutcome outcome;
  ASSERT_TRUE(WaitUntil([&] {
    outcome = SocketRead(dialled.get(), byte);
    return outcome.kind != IoOutcome::Kind::kWouldBlock;
  }));
  EXPECT_EQ(outcome.kind, IoOutcome::Kind::kFailed);
  EXPECT_FALSE(called);
  EXPECT_EQ(acceptor.Start(Listen(), [](UniqueFd, const SocketAddress&) {}).error().code,
            ErrorCode::kBusy);
}

TEST_F(AcceptorTest, MayBeStoppedByTheConnectionItHandsOver) {
  std::promise<void> stopped;
  Acceptor acceptor(reactor_, "test");
  UniqueFd listener = Listen();
  const UniqueFd first = Dial();
  const UniqueFd second = Dial();
  int calls = 0;
  ASSERT_TRUE(acceptor
                  .Start(std::move(listener),
                         [&](UniqueFd, const SocketAddress&) {
                           ++calls;
                           acceptor.Stop();
                           stopped.set_value();
                         })
                  .has_value());
  ASSERT_EQ(stopped.get_future().wait_for(kHangLimit), std::future_status::ready);
  reactor_.Stop();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace mooncake
