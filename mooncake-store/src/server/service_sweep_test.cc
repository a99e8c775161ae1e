// Calls that look at every object are worked on in steps; whoever asks meanwhile is answered
// between two of them.
#include <gtest/gtest.h>

#include <string>

#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/net/rpc/raw_peer.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-store/src/master/master_test_util.h"
#include "mooncake-store/src/protocol/codec.h"
#include "mooncake-store/src/server/metrics.h"
#include "mooncake-store/src/server/service.h"

namespace mooncake::store {
namespace {

// The service reads the time once a request and once a step: here each reading waits until the test
// has granted it.
class GrantedClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override {
    const MutexLock lock(mutex_);
    const Instant limit = HangDeadline();
    while (granted_ == 0 && !open_) {
      if (!changed_.WaitUntil(mutex_, limit)) {
        ADD_FAILURE() << "nobody granted a reading";
        break;
      }
    }
    granted_ -= granted_ > 0 ? 1 : 0;
    return {};
  }
  void Grant(std::size_t readings) {
    const MutexLock lock(mutex_);
    granted_ += readings;
    changed_.NotifyAll();
  }
  void Open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  mutable std::size_t granted_ MC_GUARDED_BY(mutex_) = 0;
  bool open_ MC_GUARDED_BY(mutex_) = false;
};

class ServiceSweep : public testing::TestWithParam<Method> {
 protected:
  void SetUp() override {
    ASSERT_EQ(test_.Mount(1, kObjects * 64), StoreCode::kOk);
    for (int number = 0; number < kObjects; ++number) {
      ASSERT_EQ(test_.Put("key" + std::to_string(number), 64), StoreCode::kOk);
    }
    service_.RegisterWith(server_);
    ASSERT_TRUE(server_.Start());
  }
  ~ServiceSweep() override {
    clock_.Open();
    server_.Stop();
  }

  template <typename Request>
  std::vector<std::byte> Frame(Method method, std::uint64_t id, const Request& request) {
    return rpc::FrameOf({.method = static_cast<std::uint16_t>(method), .id = id},
                        codec_.Encode(request));
  }
  std::vector<std::byte> SweepFrame(Method method) {
    switch (method) {
      case Method::kRemoveAll:
        return Frame(method, kSweep, RemoveAllRequest{});
      case Method::kRemoveByRegex:
        return Frame(method, kSweep, RemoveByRegexRequest{.pattern = "key"});
      default:
        return Frame(method, kSweep, GetReplicasByRegexRequest{.pattern = "key"});
    }
  }

  static constexpr int kObjects = 2000;
  static constexpr std::uint64_t kSweep = 1000;
  TestMaster test_;
  GrantedClock clock_;
  Codec codec_;
  rpc::RpcServer server_{{.host = "127.0.0.1", .threads = 1}};
  MasterMetrics metrics_{test_.master, server_, SteadyClock::Get()};
  MasterService service_{test_.master, metrics_, clock_};
};

// Each round grants the two readings that an answer needs at most: one for the step whose turn it
// is, one for the question itself. If the sweep held its thread, it would use both and wait for
// more.
TEST_P(ServiceSweep, OthersAreAnsweredBetweenTwoSteps) {
  constexpr std::uint64_t kRounds = 5;  // Of at most 16 steps, one a shard at least.
  rpc::RawPeer sweeper(server_.port());
  rpc::RawPeer other(server_.port());
  for (rpc::RawPeer* peer : {&sweeper, &other}) {
    peer->Send(rpc::HelloFrame());
    ASSERT_TRUE(peer->Read());
  }
  sweeper.Send(SweepFrame(GetParam()));
  ASSERT_TRUE(sweeper.AwaitArrival());
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const BatchExistRequest exist{.caller = {.client = {2, 2}}, .keys = {"none"}};
    // Over the very connection that waits for the sweep, and over another one.
    rpc::RawPeer& peer = round % 2 == 0 ? other : sweeper;
    peer.Send(Frame(Method::kBatchExist, round, exist));
    ASSERT_TRUE(peer.AwaitArrival());  // Else the sweep might use what is granted before.
    clock_.Grant(2);
    ASSERT_TRUE(peer.Read());
    ASSERT_EQ(peer.last_id(), round);
  }
  clock_.Open();
  const auto body = sweeper.Read();
  ASSERT_TRUE(body);
  EXPECT_EQ(sweeper.last_id(), kSweep);
  if (GetParam() == Method::kGetReplicasByRegex) {
    GetReplicasByRegexReply reply;
    ASSERT_TRUE(codec_.Decode(*body, reply));
    EXPECT_EQ(reply.keys.size(), std::size_t{kObjects});
  } else {
    RemoveManyReply reply;
    ASSERT_TRUE(codec_.Decode(*body, reply));
    EXPECT_EQ(reply.removed, std::uint64_t{kObjects});
  }
  EXPECT_EQ(test_.master.CheckInvariants(), "");
}

INSTANTIATE_TEST_SUITE_P(All, ServiceSweep,
                         testing::Values(Method::kRemoveAll, Method::kRemoveByRegex,
                                         Method::kGetReplicasByRegex),
                         [](const auto& method) { return std::string(MethodName(method.param)); });

}  // namespace
}  // namespace mooncake::store
