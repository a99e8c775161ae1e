#include "mooncake-store/src/server/metadata_cleanup.h"

#include <gtest/gtest.h>

#include "mooncake-store/src/master/eviction/lru.h"
#include "mooncake-store/src/master/master.h"

namespace mooncake::store {
namespace {

class MetadataCleanupTest : public testing::Test {
 protected:
  void Publish(const std::string& key) {
    HttpRequest request{.method = "PUT", .path = "/metadata", .body = "{}"};
    request.query.emplace_back("key", key);
    ASSERT_EQ(metadata_.Handle(request).status, 200);
  }
  void Mount(Master& master, std::uint64_t client, std::string name) {
    MountSegmentReply reply;
    master.Handle(MountSegmentRequest{.caller = {.client = {client, 1}},
                                      .segment = {.id = {client, 7},
                                                  .name = std::move(name),
                                                  .base_address = 4096,
                                                  .size_bytes = 65536,
                                                  .te_endpoint = "host:1",
                                                  .protocol = "tcp"}},
                  clock_.Now(), reply);
    ASSERT_EQ(reply.code, StoreCode::kOk);
  }

  ManualClock clock_;
  transfer::HttpMetadataServer metadata_;
};

TEST_F(MetadataCleanupTest, RemovesWhatALostClientPublishedAndNothingElse) {
  MetadataCleanup cleanup(metadata_, "");
  Master master({.client_ttl = std::chrono::seconds(10)}, std::make_unique<LruPolicy>(), &cleanup);
  for (const char* name : {"lost:1", "left:1", "alive:1"}) {
    Publish(std::string("mooncake/ram/") + name);
    Publish(std::string("mooncake/rpc_meta/") + name);
  }
  Mount(master, 1, "lost:1");
  Mount(master, 2, "left:1");
  Mount(master, 3, "alive:1");
  UnmountSegmentReply unmounted;
  master.Handle(UnmountSegmentRequest{.caller = {.client = {2, 1}}, .segment = {2, 7}},
                clock_.Now(), unmounted);
  ASSERT_EQ(unmounted.code, StoreCode::kOk);
  clock_.Advance(std::chrono::seconds(9));
  PingReply ping;
  master.Handle(PingRequest{.caller = {.client = {3, 1}}}, clock_.Now(), ping);
  clock_.Advance(std::chrono::seconds(2));
  while (master.Tick(clock_.Now())) {
  }
  EXPECT_FALSE(metadata_.Find("mooncake/ram/lost:1"));
  EXPECT_FALSE(metadata_.Find("mooncake/rpc_meta/lost:1"));
  EXPECT_EQ(metadata_.key_count(), 4u);
}

TEST_F(MetadataCleanupTest, FindsTheKeysOfANamedCluster) {
  MetadataCleanup cleanup(metadata_, "east");
  Publish("mooncake/east/ram/a:1");
  Publish("mooncake/ram/a:1");
  cleanup.OnSegment({.kind = SegmentEventKind::kMounted, .info = {.name = "a:1"}});
  cleanup.OnSegment({.kind = SegmentEventKind::kStatus, .status = SegmentStatus::kUnmounting});
  EXPECT_FALSE(metadata_.Find("mooncake/east/ram/a:1"));
  EXPECT_TRUE(metadata_.Find("mooncake/ram/a:1"));
}

}  // namespace
}  // namespace mooncake::store
