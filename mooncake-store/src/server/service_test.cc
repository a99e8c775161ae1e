#include "mooncake-store/src/server/service.h"

#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "mooncake-common/src/net/socket.h"
#include "mooncake-store/src/server/server_test_util.h"

namespace mooncake::store {
namespace {

constexpr std::uint64_t kMiB16 = std::uint64_t{16} << 20;

class MasterServiceTest : public ServerTest {};

TEST_F(MasterServiceTest, SaysWhichVersionItIs) {
  Begin();
  TestCaller caller(server_->rpc_port());
  const auto body = caller.CallRaw(Method::kServiceReady, {});
  ASSERT_TRUE(body) << body.error().ToString();
  Codec codec;
  ServiceReadyReply reply;
  ASSERT_TRUE(codec.Decode(*body, reply));
  EXPECT_EQ(reply.version, "1.0.0");
}

TEST_F(MasterServiceTest, CarriesAnObjectThroughItsLife) {
  Begin();
  TestCaller caller(server_->rpc_port());
  EXPECT_EQ(caller.Call<PingReply>(Method::kPing, PingRequest{}).status,
            ClientStatus::kNeedRemount);
  ASSERT_EQ(caller.Mount(kMiB16), StoreCode::kOk);
  EXPECT_EQ(caller.Call<PingReply>(Method::kPing, PingRequest{}).status, ClientStatus::kOk);
  EXPECT_FALSE(caller.Exists("a"));
  ASSERT_EQ(caller.Put("a", 4096), StoreCode::kOk);
  const auto got = caller.Call<BatchGetReplicasReply>(
      Method::kBatchGetReplicas,
      BatchGetReplicasRequest{.chain = {.chain_id = 9, .total = 2}, .keys = {"a", "none"}});
  ASSERT_EQ(got.objects.size(), 2u);
  EXPECT_EQ(got.objects[0].size_bytes, 4096u);
  EXPECT_EQ(got.objects[1].code, StoreCode::kObjectNotFound);
  EXPECT_EQ(caller.Remove("a"), StoreCode::kObjectHasLease);

  const auto found = caller.Call<GetReplicasByRegexReply>(
      Method::kGetReplicasByRegex, GetReplicasByRegexRequest{.pattern = "^a$"});
  EXPECT_THAT(found.keys, testing::ElementsAre("a"));
  EXPECT_EQ(caller
                .Call<GetReplicasByRegexReply>(Method::kGetReplicasByRegex,
                                               GetReplicasByRegexRequest{.pattern = "["})
                .code,
            StoreCode::kInvalidParams);
  EXPECT_EQ(caller
                .Call<RemoveManyReply>(Method::kRemoveByRegex,
                                       RemoveByRegexRequest{.force = true, .pattern = "a"})
                .removed,
            1u);
  ASSERT_EQ(caller.Put("b", 100), StoreCode::kOk);
  ASSERT_EQ(caller.Put("c", 100), StoreCode::kOk);
  EXPECT_EQ(
      caller.Call<RemoveManyReply>(Method::kRemoveAll, RemoveAllRequest{.force = true}).removed,
      2u);
  const auto segments =
      caller.Call<QuerySegmentsReply>(Method::kQuerySegments, QuerySegmentsRequest{});
  ASSERT_EQ(segments.segments.size(), 1u);
  EXPECT_EQ(segments.segments[0].info.te_endpoint, "host1:23456");
  EXPECT_EQ(caller
                .Call<UnmountSegmentReply>(Method::kUnmountSegment,
                                           UnmountSegmentRequest{.segment = {1, 7}})
                .code,
            StoreCode::kOk);
}

TEST_F(MasterServiceTest, RefusesInWordsAndCountsWhatItCannotRead) {
  Begin();
  TestCaller caller(server_->rpc_port());
  const auto refused = caller.CallRaw(Method::kBatchExist, std::as_bytes(std::span("nonsense")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("BatchExist of 9 bytes"));
  EXPECT_EQ(Metric("master_rpc_malformed_requests_total"), 1);
  EXPECT_FALSE(caller.CallRaw(static_cast<Method>(4711), {}));
  EXPECT_EQ(Metric("master_rpc_unknown_methods_total"), 1);
  EXPECT_FALSE(caller.Exists("a")) << "the connection must live on";
}

// The place of a message's keys in their call is a peer's word: policies divide by it.
TEST_F(MasterServiceTest, RefusesKeysThatLieOutsideTheirCallAndLivesOn) {
  Begin();
  TestCaller caller(server_->rpc_port());
  Codec codec;
  for (const ChainPosition chain : {ChainPosition{.chain_id = 1, .position = 0xffffffff},
                                    {.chain_id = 2, .position = 0xffffffff, .total = 0xffffffff},
                                    {.chain_id = 3, .position = 1, .total = 1}}) {
    EXPECT_FALSE(caller.CallRaw(
        Method::kBatchExist, codec.Encode(BatchExistRequest{.chain = chain, .keys = {"unknown"}})));
    EXPECT_FALSE(
        caller.CallRaw(Method::kBatchGetReplicas,
                       codec.Encode(BatchGetReplicasRequest{.chain = chain, .keys = {"unknown"}})));
    EXPECT_FALSE(caller.CallRaw(Method::kBatchPutStart,
                                codec.Encode(BatchPutStartRequest{
                                    .chain = chain, .keys = {"unknown"}, .sizes_bytes = {1}})));
  }
  EXPECT_EQ(Metric("master_rpc_malformed_requests_total"), 9);
  EXPECT_FALSE(caller.Exists("a"));
}

TEST_F(MasterServiceTest, CountsOneKeyAsTheSingleOperationAndSeveralAsABatch) {
  Begin();
  TestCaller caller(server_->rpc_port());
  ASSERT_EQ(caller.Mount(kMiB16), StoreCode::kOk);
  ASSERT_EQ(caller.Put("a", 4096), StoreCode::kOk);
  EXPECT_EQ(caller.Put("a", 4096), StoreCode::kObjectAlreadyExists);
  caller.Start({"a", "b", "c"}, 5000);
  caller.End({"b"});
  caller.End({"c"}, false);
  EXPECT_EQ(Metric("master_put_start_requests_total"), 2);
  EXPECT_EQ(Metric("master_put_start_failures_total"), 1);
  EXPECT_EQ(Metric("master_put_end_requests_total"), 2);
  EXPECT_EQ(Metric("master_put_revoke_requests_total"), 1);
  EXPECT_EQ(Metric("master_batch_put_start_requests_total"), 1);
  EXPECT_EQ(Metric("master_batch_put_start_items_total"), 3);
  EXPECT_EQ(Metric("master_batch_put_start_failed_items_total"), 1);
  EXPECT_EQ(Metric("master_batch_put_start_partial_successes_total"), 1);
  EXPECT_EQ(Metric("master_batch_put_start_failures_total"), 0);
  EXPECT_EQ(Metric("master_value_size_bytes_bucket{le=\"4096\"}"), 1);
  EXPECT_EQ(Metric("master_value_size_bytes_count"), 3);
  EXPECT_EQ(Metric("master_key_count"), 2);
  EXPECT_EQ(Metric("segment_total_capacity_bytes{segment=\"host1:12345\"}"),
            static_cast<double>(kMiB16));
  EXPECT_GE(Metric("segment_allocated_bytes{segment=\"host1:12345\"}"), 9096);
}

TEST_F(MasterServiceTest, DropsTheMetricsOfASegmentThatIsGone) {
  Begin();
  TestCaller caller(server_->rpc_port());
  ASSERT_EQ(caller.Mount(kMiB16), StoreCode::kOk);
  EXPECT_NE(Metric("segment_total_capacity_bytes{segment=\"host1:12345\"}"), -1);
  (void)caller.Call<UnmountSegmentReply>(Method::kUnmountSegment,
                                         UnmountSegmentRequest{.segment = {1, 7}});
  EXPECT_TRUE(WaitUntil([&] {
    return Metric("segment_total_capacity_bytes{segment=\"host1:12345\"}") == -1;
  })) << "the segment is still there";
}

TEST_F(MasterServiceTest, DropsASilentClientAsTimePasses) {
  ServerOptions options = Options();
  options.master.client_ttl = std::chrono::milliseconds(300);
  Begin(options);
  TestCaller caller(server_->rpc_port());
  ASSERT_EQ(caller.Mount(kMiB16), StoreCode::kOk);
  EXPECT_TRUE(WaitUntil([&] { return Metric("master_clients_expired_total") == 1; }))
      << "the client is still there";
  EXPECT_EQ(Metric("master_active_clients"), 0);
}

TEST_F(MasterServiceTest, ServesManyClientsOnSeveralThreads) {
  ServerOptions options = Options();
  options.rpc_threads = 3;
  Begin(options);
  TestCaller owner(server_->rpc_port());
  ASSERT_EQ(owner.Mount(kMiB16), StoreCode::kOk);
  constexpr int kClients = 4;
  constexpr int kKeys = 50;
  std::vector<std::thread> threads;
  for (int client = 0; client < kClients; ++client) {
    threads.emplace_back([&, client] {
      TestCaller caller(server_->rpc_port(), {100 + static_cast<std::uint64_t>(client), 1});
      for (int key = 0; key < kKeys; ++key) {
        const std::string name = fmt::format("{}/{}", client, key);
        EXPECT_EQ(caller.Put(name, 1000), StoreCode::kOk);
        EXPECT_TRUE(caller.Exists(name));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(Metric("master_key_count"), kClients * kKeys);
  EXPECT_EQ(Metric("master_exist_key_requests_total"), kClients * kKeys);
}

// Another version of the protocol must show up in words and in a number.
TEST_F(MasterServiceTest, CountsPeersThatSpeakSomethingElse) {
  Begin();
  const auto address = ResolveAddress("127.0.0.1", server_->rpc_port());
  ASSERT_TRUE(address);
  HttpClient http;
  EXPECT_FALSE(http.Get(fmt::format("http://127.0.0.1:{}/", server_->rpc_port())));
  const auto refused = [&] {
    double sum = 0;
    for (const char* reason : {"malformed_frame", "no_hello_came_first"}) {
      sum += Metric(fmt::format("master_rpc_refused_connections_total{{reason=\"{}\"}}", reason));
    }
    return sum;
  };
  EXPECT_TRUE(WaitUntil([&] { return refused() == 1; })) << "the stranger was not counted";
}

TEST_F(MasterServiceTest, NamesEveryMethod) {
  for (int number = 1; number < 20; ++number) {
    if (number < 7 || number > 9) {
      EXPECT_NE(MethodName(static_cast<Method>(number)), "unknown") << number;
    }
  }
  EXPECT_EQ(MethodName(static_cast<Method>(4711)), "unknown");
}

TEST_F(MasterServiceTest, NamesFlagAndPortWhenAPortIsTaken) {
  Begin();
  ServerOptions options = Options();
  options.rpc_port = server_->rpc_port();
  const auto rpc = MasterServer(options).Start();
  ASSERT_FALSE(rpc);
  EXPECT_THAT(rpc.error().message,
              testing::AllOf(testing::HasSubstr(std::to_string(options.rpc_port)),
                             testing::HasSubstr("--rpc_port")));
  options = Options();
  options.admin_port = server_->admin_port();
  const auto admin = MasterServer(options).Start();
  ASSERT_FALSE(admin);
  EXPECT_THAT(admin.error().message, testing::HasSubstr("--metrics_port"));
  options = Options();
  options.rpc_interface = "no-such0";
  const auto interface = MasterServer(options).Start();
  ASSERT_FALSE(interface);
  EXPECT_THAT(interface.error().message, testing::HasSubstr("--rpc_interface=no-such0"));
  options.rpc_interface = "lo";
  EXPECT_TRUE(MasterServer(options).Start());
}

TEST_F(MasterServiceTest, StopsTwiceAndWithoutAStart) {
  MasterServer never(Options());
  never.Stop();
  Begin();
  TestCaller caller(server_->rpc_port());
  EXPECT_FALSE(caller.Exists("a"));
  server_->Stop();
  server_->Stop();
}

}  // namespace
}  // namespace mooncake::store
