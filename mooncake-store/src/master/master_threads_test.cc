// Several threads on one master: no lock is missing, no space is lost, no leased byte is given
// away.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/master_test_util.h"

namespace mooncake::store {
namespace {

constexpr std::uint64_t kPage = 4096;

class Worker {
 public:
  Worker(Master& master, std::uint64_t number, std::atomic<std::int64_t>& clock)
      : master_(master),
        rng_(number),
        client_(TestMaster::Client(number)),
        number_(number),
        clock_(clock) {}

  void Run() {
    for (int step = 0; step < 300; ++step) {
      const Instant now(Duration(clock_ += 1000000));
      MakeKeys();
      const ChainPosition chain{.chain_id = rng_.Next(), .total = 16};
      switch (rng_.Uniform(8)) {
        case 0:
        case 1:
        case 2:
          Put(chain, now);
          break;
        case 3:
          master_.Handle(
              BatchExistRequest{.caller = {.client = client_}, .chain = chain, .keys = views_}, now,
              exists_);
          break;
        case 4:
          master_.Handle(
              BatchGetReplicasRequest{
                  .caller = {.client = client_}, .chain = chain, .keys = views_},
              now, got_);
          break;
        case 5:
          master_.Handle(BatchRemoveRequest{.force = rng_.Chance(1, 2), .keys = views_}, now,
                         removed_);
          break;
        case 6: {
          MountSegmentReply mounted;
          master_.Handle(MountSegmentRequest{.caller = {.client = client_},
                                             .segment = TestMaster::Info(number_, 40 * kPage)},
                         now, mounted);
          if (rng_.Chance(1, 4)) {
            UnmountSegmentReply unmounted;
            master_.Handle(
                UnmountSegmentRequest{.caller = {.client = client_}, .segment = {number_, 7}}, now,
                unmounted);
          }
          break;
        }
        default: {
          PingReply pong;
          master_.Handle(PingRequest{.caller = {.client = client_}}, now, pong);
          ReportFailedReadsReply reported;
          master_.Handle(ReportFailedReadsRequest{.caller = {.client = client_},
                                                  .segments = {{.number = 1, .incarnation = 1}}},
                         now, reported);
        }
      }
    }
  }

 private:
  void MakeKeys() {
    keys_.clear();
    views_.clear();
    for (int index = 0; index < 16; ++index) {
      keys_.push_back("key" + std::to_string(rng_.Uniform(300)));
    }
    views_.assign(keys_.begin(), keys_.end());
  }

  void Put(const ChainPosition& chain, Instant now) {
    BatchPutStartRequest start{
        .caller = {.client = client_}, .chain = chain, .upsert = rng_.Chance(1, 3), .keys = views_};
    start.config.replica_num = static_cast<std::uint32_t>(rng_.Between(1, 2));
    for (int index = 0; index < 16; ++index) {
      start.sizes_bytes.push_back(rng_.Between(1, 2 * kPage));
    }
    master_.Handle(start, now, started_);
    BatchPutEndRequest end{.caller = {.client = client_}};
    for (std::size_t index = 0; index < views_.size(); ++index) {
      if (started_.results[index].code == StoreCode::kOk) {
        end.keys.push_back(views_[index]);
        end.endings.push_back(
            {.version = started_.results[index].version, .success = rng_.Chance(7, 8)});
      }
    }
    master_.Handle(end, now, ended_);
  }

  Master& master_;
  Rng rng_;
  const Uuid client_;
  const std::uint64_t number_;
  std::atomic<std::int64_t>& clock_;
  std::vector<std::string> keys_;
  std::vector<std::string_view> views_;
  BatchExistReply exists_;
  BatchGetReplicasReply got_;
  BatchRemoveReply removed_;
  BatchPutStartReply started_;
  BatchPutEndReply ended_;
};

TEST(MasterThreads, ManyMayUseItAtOnce) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    TestMaster test({.shard_count = 4});
    std::atomic<std::int64_t> clock{0};
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    threads.reserve(5);
    for (std::uint64_t number = 1; number <= 4; ++number) {
      threads.emplace_back([&, number] { Worker(test.master, seed * 100 + number, clock).Run(); });
    }
    threads.emplace_back([&] {
      while (!done) {
        (void)test.master.Tick(Instant(Duration(clock.load())), 64);
        std::this_thread::yield();
      }
    });
    for (std::size_t index = 0; index < 4; ++index) {
      threads[index].join();
    }
    done = true;
    threads[4].join();
    EXPECT_EQ(test.master.CheckInvariants(), "");
    const Instant late(Duration(clock.load()) + std::chrono::hours(1));
    while (test.master.Tick(late)) {
    }
    EXPECT_EQ(test.master.counters().objects, 0U);  // All clients were silent for an hour.
    EXPECT_EQ(test.master.counters().in_flight_bytes, 0U);
    EXPECT_EQ(test.master.counters().metadata_bytes, 0U);
    EXPECT_EQ(test.master.CheckInvariants(), "");
  }
}

}  // namespace
}  // namespace mooncake::store
