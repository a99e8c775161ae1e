#include "mooncake-store/src/server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "mooncake-store/src/master/eviction/lru.h"

namespace mooncake::store {
namespace {

using testing::HasSubstr;

class MasterMetricsTest : public testing::Test {
 protected:
  // The line of a sample.
  void ExpectSample(const std::string& line) {
    EXPECT_THAT(metrics_.Expose(), HasSubstr("\n" + line + "\n"));
  }

  ManualClock clock_;
  Master master_{{}, std::make_unique<LruPolicy>()};
  rpc::RpcServer rpc_{{.host = "127.0.0.1"}};
  MasterMetrics metrics_{master_, rpc_, clock_};
};

TEST_F(MasterMetricsTest, HaveTheNamesThatTheDocumentationTellsToWatch) {
  std::ifstream file(std::string(MC_SOURCE_FOLDER) + "/docs/operations.md");
  ASSERT_TRUE(file);
  const auto all = metrics_.Names();
  const std::set<std::string> names(all.begin(), all.end());
  EXPECT_EQ(names.size(), all.size());
  const std::regex word("`((?:master|segment|mem_cache|total_get)_[a-z_]*)`");
  std::size_t found = 0;
  for (std::string line; std::getline(file, line);) {
    for (auto at = std::sregex_iterator(line.begin(), line.end(), word);
         at != std::sregex_iterator(); ++at, ++found) {
      EXPECT_TRUE(names.contains((*at)[1].str())) << line;
    }
  }
  EXPECT_GT(found, 14u);
}

TEST_F(MasterMetricsTest, StandAtZeroFromTheStart) {
  ExpectSample("master_put_start_requests_total 0");
  ExpectSample("master_batch_query_ip_items_total 0");
  ExpectSample("mem_cache_hit_nums_ 0");
  ExpectSample("ha_standby_state 0");
  EXPECT_THAT(metrics_.Expose(), HasSubstr("# TYPE segment_allocated_bytes gauge\n"));
}

TEST_F(MasterMetricsTest, TellWhollyAndPartlyFailedBatchesApart) {
  BatchGetReplicasRequest request{.keys = {"a", "b"}};
  BatchGetReplicasReply reply;
  reply.objects = {{.code = StoreCode::kObjectNotFound}, {.code = StoreCode::kObjectNotFound}};
  metrics_.Count(request, reply);
  reply.objects[0].code = StoreCode::kOk;
  metrics_.Count(request, reply);
  reply.objects[1].code = StoreCode::kOk;
  metrics_.Count(request, reply);
  ExpectSample("master_batch_get_replica_list_requests_total 3");
  ExpectSample("master_batch_get_replica_list_failures_total 1");
  ExpectSample("master_batch_get_replica_list_partial_successes_total 1");
  ExpectSample("master_batch_get_replica_list_items_total 6");
  ExpectSample("master_batch_get_replica_list_failed_items_total 3");
}

TEST_F(MasterMetricsTest, CountAMessageThatFailsAsAWholeForEachOfItsKeys) {
  metrics_.Count(BatchPutStartRequest{.keys = {"a", "b", "c"}, .sizes_bytes = {1, 2, 3}},
                 BatchPutStartReply{.code = StoreCode::kInvalidParams});
  ExpectSample("master_batch_put_start_failed_items_total 3");
  ExpectSample("master_value_size_bytes_count 0");
  metrics_.Count(BatchRemoveRequest{.keys = {"a", "b"}},
                 BatchRemoveReply{.codes = {StoreCode::kOk, StoreCode::kObjectHasLease}});
  ExpectSample("master_remove_requests_total 2");
  ExpectSample("master_remove_failures_total 1");
  metrics_.Count(ReMountSegmentsRequest{},
                 ReMountSegmentsReply{.segments = {{}, {.code = StoreCode::kInvalidParams}}});
  ExpectSample("master_remount_segment_failures_total 1");
}

TEST_F(MasterMetricsTest, FollowTheMastersOwnCountersWithoutCountingTwice) {
  BatchGetReplicasReply reply;
  master_.Handle(BatchGetReplicasRequest{.keys = {"a"}}, clock_.Now(), reply);
  ExpectSample("total_get_nums_ 1");
  ExpectSample("total_get_nums_ 1");
  master_.Handle(BatchGetReplicasRequest{.keys = {"a"}}, clock_.Now(), reply);
  ExpectSample("total_get_nums_ 2");
  EXPECT_THAT(metrics_.Summary(), HasSubstr("Keys: 0 (soft-pinned: 0) | Clients: "));
}

}  // namespace
}  // namespace mooncake::store
