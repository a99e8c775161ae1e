#include "mooncake-store/src/server/metadata_cleanup.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mooncake-store/src/master/eviction/lru.h"
#include "mooncake-store/src/master/master.h"

namespace mooncake::store {
namespace {

class MetadataCleanupTest : public testing::Test {
 protected:
  void Publish(const std::string& key, std::string value = "{}") {
    HttpRequest request{.method = "PUT", .path = "/metadata", .body = std::move(value)};
    request.query.emplace_back("key", key);
    ASSERT_EQ(metadata_.Handle(request).status, 200);
  }
  // As an engine does that starts.
  void Appear(const std::string& name, int rpc_port) {
    (void)metadata_.Erase("mooncake/rpc_meta/" + name);
    Publish("mooncake/rpc_meta/" + name, fmt::format("{{\"rpc_port\":{}}}", rpc_port));
    Publish("mooncake/ram/" + name);
  }
  [[nodiscard]] bool IsFound(const std::string& name) {
    EXPECT_EQ(metadata_.Find("mooncake/ram/" + name).has_value(),
              metadata_.Find("mooncake/rpc_meta/" + name).has_value());
    return metadata_.Find("mooncake/ram/" + name).has_value();
  }
  void Mount(Master& master, std::uint64_t client, std::string name) {
    MountSegmentReply reply;
    master.Handle(MountSegmentRequest{.caller = {.client = {client, 1}},
                                      .segment = {.id = {client, 7},
                                                  .name = "label:1",
                                                  .base_address = 4096,
                                                  .size_bytes = 65536,
                                                  .te_endpoint = std::move(name),
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

// Goal: a process that came back under its old name is found whenever its former life expires.
TEST_F(MetadataCleanupTest, LeavesWhoHasTakenTheNameOverAlone) {
  MetadataCleanup cleanup(metadata_, "");
  Master master({.client_ttl = std::chrono::seconds(10)}, std::make_unique<LruPolicy>(), &cleanup);
  const auto pass = [&](int seconds) {
    clock_.Advance(std::chrono::seconds(seconds));
    while (master.Tick(clock_.Now())) {
    }
  };
  for (const char* name : {"lends:1", "uses:1", "same_port:1", "stays_away:1"}) {
    Appear(name, 1);
  }
  Mount(master, 1, "lends:1");
  Mount(master, 2, "uses:1");
  Mount(master, 3, "same_port:1");
  Mount(master, 4, "stays_away:1");
  pass(5);
  Appear("lends:1", 2);
  Mount(master, 11, "lends:1");
  Appear("uses:1", 2);  // Lends nothing any more, so the master knows nothing of it.
  Appear("same_port:1", 1);
  Mount(master, 13, "same_port:1");
  pass(6);
  EXPECT_TRUE(IsFound("lends:1"));
  EXPECT_TRUE(IsFound("uses:1"));
  EXPECT_TRUE(IsFound("same_port:1"));
  EXPECT_FALSE(IsFound("stays_away:1"));
  pass(10);
  EXPECT_FALSE(IsFound("lends:1")) << "nobody has that name any more";
  EXPECT_FALSE(IsFound("same_port:1"));
}

TEST_F(MetadataCleanupTest, FindsTheKeysOfANamedCluster) {
  MetadataCleanup cleanup(metadata_, "east");
  Publish("mooncake/east/ram/a:1");
  Publish("mooncake/ram/a:1");
  cleanup.OnSegment({.kind = SegmentEventKind::kMounted, .info = {.te_endpoint = "a:1"}});
  cleanup.OnSegment({.kind = SegmentEventKind::kStatus, .status = SegmentStatus::kUnmounting});
  EXPECT_FALSE(metadata_.Find("mooncake/east/ram/a:1"));
  EXPECT_TRUE(metadata_.Find("mooncake/ram/a:1"));
}

}  // namespace
}  // namespace mooncake::store
