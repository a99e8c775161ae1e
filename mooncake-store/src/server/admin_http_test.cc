#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "mooncake-store/src/server/server_test_util.h"

namespace mooncake::store {
namespace {

using testing::ElementsAre;
using Json = nlohmann::json;

constexpr std::uint64_t kMiB64 = std::uint64_t{64} << 20;

class AdminHttpTest : public ServerTest {
 protected:
  void SetUp() override {
    Begin();
    caller_ = std::make_unique<TestCaller>(server_->rpc_port(), Uuid{1, 2});
  }
  void Expect(std::string_view path, int status, std::string_view type, std::string_view body) {
    const HttpResponse response = Http(path);
    EXPECT_EQ(response.status, status) << path;
    EXPECT_EQ(FindHeader(response.headers, "Content-Type").value_or(""), type) << path;
    EXPECT_EQ(response.body, body) << path;
  }

  static constexpr std::string_view kJson = "application/json; charset=utf-8";
  static constexpr std::string_view kText = "text/plain; charset=utf-8";
  static constexpr std::string_view kList = "text/plain; version=0.0.4";
  std::unique_ptr<TestCaller> caller_;
};

TEST_F(AdminHttpTest, AnswersAsPublishedWhatConcernsTheService) {
  Expect("/health", 200, kJson,
         R"({"status":"ok","role":"leader","ha_state":"serving","service_ready":true,)"
         R"("leader_address":null,"view_version":null})");
  Expect("/role", 200, kText, "leader");
  Expect("/ha_status", 200, kText, "serving");
  Expect("/leader", 200, kJson, R"({"present":false,"leader_address":null,"view_version":null})");
  Expect("/kv_events/status", 200, kJson,
         R"({"enabled":false,"published_batches":0,"published_events":0,"dropped_events":0,)"
         R"("skipped_unparsed_keys":0})");
  Expect("/no/such/path", 404, "", "404 Not Found");
  EXPECT_EQ(Http("/health", "POST").status, 404);
  EXPECT_THAT(Http("/metrics/summary").body,
              testing::StartsWith("role=leader, state=serving, service_ready=true, master={"));
  EXPECT_THAT(Http("/metrics").body, testing::HasSubstr("# TYPE master_key_count gauge\n"));
}

TEST_F(AdminHttpTest, SaysThatAFeatureIsNotThere) {
  const std::string body =
      R"({"success":false,"error_code":-1011,"error_message":"UNAVAILABLE_IN_CURRENT_MODE"})";
  const std::vector<std::pair<std::string, std::string>> routes{
      {"POST", "/api/v1/drain_jobs"},        {"GET", "/api/v1/drain_jobs/query?job_id=1"},
      {"POST", "/api/v1/drain_jobs/cancel"}, {"GET", "/api/v1/tenant_quotas"},
      {"PUT", "/api/v1/tenant_quotas"},      {"DELETE", "/api/v1/tenant_quotas"}};
  for (const auto& [method, path] : routes) {
    const HttpResponse response = Http(path, method);
    EXPECT_EQ(response.status, 409) << path;
    EXPECT_EQ(response.body, body) << path;
  }
}

TEST_F(AdminHttpTest, ShowsWhereAnObjectLies) {
  ASSERT_EQ(caller_->Mount(kMiB64), StoreCode::kOk);
  ASSERT_EQ(caller_->Put("a", 100), StoreCode::kOk);
  Expect("/query_key?key=a", 200, kJson,
         R"({"success":true,"data":[{"size_":100,"buffer_address_":139637976727552,)"
         R"("protocol_":"tcp","transport_endpoint_":"host1:23456"}]})");
  for (const char* path : {"/query_key?key=none", "/query_key", "/query_key?key="}) {
    Expect(path, 404, kJson,
           R"({"success":false,"error_code":-704,"error_message":"OBJECT_NOT_FOUND"})");
  }
}

TEST_F(AdminHttpTest, ShowsAllRangesOfAnObjectThatLiesOnSeveral) {
  // Two segments, each too small for the object, make it lie on both.
  ASSERT_EQ(caller_->Mount(65536, "host1:1"), StoreCode::kOk);
  TestCaller other(server_->rpc_port(), {9, 9});
  ASSERT_EQ(other.Mount(65536, "host2:1"), StoreCode::kOk);
  ASSERT_EQ(caller_->Put("wide", 100'000), StoreCode::kOk);
  const Json replica = Json::parse(Http("/query_key?key=wide").body)["data"][0];
  EXPECT_EQ(replica["size_"], 100'000);
  ASSERT_EQ(replica["extents"].size(), 2u);
  EXPECT_EQ(replica["extents"][0]["size_"].get<int>() + replica["extents"][1]["size_"].get<int>(),
            100'000);
  EXPECT_EQ(replica["buffer_address_"], replica["extents"][0]["buffer_address_"]);
}

TEST_F(AdminHttpTest, LeasesAnObjectThatIsAskedForAloneButNotInABatch) {
  ASSERT_EQ(caller_->Mount(kMiB64), StoreCode::kOk);
  ASSERT_EQ(caller_->Put("a", 100), StoreCode::kOk);
  ASSERT_EQ(caller_->Put("b", 100), StoreCode::kOk);
  (void)Http("/query_key?key=a");
  (void)Http("/batch_query_keys?keys=b");
  EXPECT_EQ(caller_->Remove("a"), StoreCode::kObjectHasLease);
  EXPECT_EQ(caller_->Remove("b"), StoreCode::kOk);
  EXPECT_EQ(Metric("total_get_nums_"), 1);
}

TEST_F(AdminHttpTest, ShowsSeveralKeysOfAnySpelling) {
  ASSERT_EQ(caller_->Mount(kMiB64), StoreCode::kOk);
  ASSERT_EQ(caller_->Put("a", 1), StoreCode::kOk);
  ASSERT_EQ(caller_->Put("b/\xc3\xbc", 1), StoreCode::kOk);
  const Json found = Json::parse(Http("/batch_query_keys?keys=a,b%2F%C3%BC,,none,").body);
  EXPECT_EQ(found["success"], true);
  EXPECT_EQ(found["data"].size(), 3u);
  EXPECT_EQ(found["data"]["a"]["ok"], true);
  EXPECT_EQ(found["data"]["a"]["error"], nullptr);
  EXPECT_EQ(found["data"]["a"]["values"][0]["size_"], 1);
  EXPECT_EQ(found["data"]["b/\xc3\xbc"]["ok"], true);
  EXPECT_EQ(found["data"]["none"], Json::parse(R"({"ok":false,"error":"OBJECT_NOT_FOUND",
      "values":null,"disk_values":null,"local_disk_values":null,"nof_values":null})"));
  for (const char* path :
       {"/batch_query_keys", "/batch_query_keys?keys=", "/batch_query_keys?keys=,"}) {
    Expect(path, 400, kJson,
           R"({"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."})");
  }
  // A key that is no UTF-8 must not break the answer.
  ASSERT_EQ(caller_->Put("\xff", 1), StoreCode::kOk);
  EXPECT_EQ(Http("/batch_query_keys?keys=%FF").status, 200);
  EXPECT_THAT(Http("/get_all_keys").body, testing::EndsWith("\n"));
}

TEST_F(AdminHttpTest, ListsKeysAndSegmentsOneALine) {
  Expect("/get_all_keys", 200, kList, "");
  Expect("/get_all_segments", 200, kList, "");
  ASSERT_EQ(caller_->Mount(kMiB64), StoreCode::kOk);
  ASSERT_EQ(caller_->Put("only", 1), StoreCode::kOk);
  Expect("/get_all_keys", 200, kList, "only\n");
  Expect("/get_all_segments", 200, kList, "host1:12345\n");
}

TEST_F(AdminHttpTest, ShowsSegments) {
  Expect("/get_segments_detail", 200, kJson, R"({"total_segments":0,"segments":[]})");
  ASSERT_EQ(caller_->Mount(kMiB64), StoreCode::kOk);
  Expect("/get_segments_detail", 200, kJson,
         R"({"total_segments":1,"segments":[{"segment_name":"host1:12345","segment_id":"1-7",)"
         R"("client_id":"1-2","base_address":"0x7f0000000000","size_bytes":67108864,)"
         R"("size_human":"0.0625 GiB","te_endpoint":"host1:23456","protocol":"tcp","status":"OK",)"
         R"("allocator_used_bytes":0,"allocator_capacity_bytes":67108864,)"
         R"("allocator_usage_percent":0.0}]})");
  Expect("/query_segment?segment=host1:12345", 200, kList,
         "host1:12345\nUsed(bytes): 0\nCapacity(bytes) : 67108864\n");
  for (const char* path : {"/query_segment?segment=none", "/query_segment"}) {
    Expect(path, 500, kList, "Failed to query segment");
  }
  Expect("/api/v1/segments/status?segment=host1:12345", 200, kJson,
         R"({"success":true,"segment":"host1:12345","status":1,"status_name":"OK",)"
         R"("error_code":0,"error_message":""})");
  Expect("/api/v1/segments/status?segment=none", 404, kJson,
         R"({"success":false,"error_code":-101,"error_message":"SEGMENT_NOT_FOUND"})");
  Expect(
      "/api/v1/segments/status", 400, kJson,
      R"({"success":false,"error_code":-600,"error_message":"Missing segment query parameter"})");
}

TEST_F(AdminHttpTest, RemovesAllThatHasNoLeaseOrEverything) {
  ASSERT_EQ(caller_->Mount(kMiB64), StoreCode::kOk);
  ASSERT_EQ(caller_->Put("a", 1), StoreCode::kOk);
  ASSERT_EQ(caller_->Put("b", 1), StoreCode::kOk);
  ASSERT_TRUE(caller_->Exists("a"));
  EXPECT_EQ(Http("/api/v1/remove_all", "POST").body, R"({"success":true,"removed_count":1})");
  EXPECT_EQ(Http("/api/v1/remove_all?force=true", "POST").body,
            R"({"success":true,"removed_count":1})");
  EXPECT_EQ(Http("/api/v1/remove_all").status, 404) << "GET must not remove";
  EXPECT_EQ(Metric("master_remove_all_requests_total"), 2);
}

TEST_F(AdminHttpTest, ServesTheEnginesMetadataOnlyWhenAsked) {
  EXPECT_EQ(server_->metadata_port(), 0);
  ServerOptions options = Options();
  options.serve_metadata = true;
  Begin(options);
  const std::string url =
      fmt::format("http://127.0.0.1:{}/metadata?key=k", server_->metadata_port());
  EXPECT_EQ(http_.Get(url)->status, 404);
  EXPECT_EQ(http_.Put(url, "application/json", "{}")->status, 200);
  EXPECT_EQ(http_.Get(url)->body, "{}");
}

}  // namespace
}  // namespace mooncake::store
