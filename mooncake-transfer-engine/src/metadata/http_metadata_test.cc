// Against a server on this host that answers as the published ones do and writes down what it was
// asked.
#include "mooncake-transfer-engine/src/metadata/http_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/net/http/server.h"
#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/metadata/descriptor_codec.h"

namespace mooncake::transfer {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

class FakeStore {
 public:
  explicit FakeStore(std::uint16_t port = 0) : server_({.host = "127.0.0.1", .port = port}) {
    server_.Handle(Router::kAnyMethod, "/metadata",
                   [this](const HttpRequest& request) { return Answer(request); });
    const auto started = server_.Start();
    EXPECT_TRUE(started.has_value()) << started.error().message;
  }

  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server_.port()) + "/metadata";
  }

  // What was asked since the last call: "PUT mooncake/ram/a".
  std::vector<std::string> TakeRequests() {
    const MutexLock lock(mutex_);
    return std::exchange(requests_, {});
  }
  std::optional<std::string> Value(const std::string& key) {
    const MutexLock lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  void SetValue(const std::string& key, const std::string& value) {
    const MutexLock lock(mutex_);
    values_[key] = value;
  }
  void Lose() {
    const MutexLock lock(mutex_);
    values_.clear();
  }
  void Break(bool broken) {
    const MutexLock lock(mutex_);
    broken_ = broken;
  }

 private:
  HttpResponse Answer(const HttpRequest& request) {
    const MutexLock lock(mutex_);
    const std::string key(request.Query("key").value_or(""));
    requests_.push_back(request.method + " " + key);
    if (broken_) {
      return {.status = 500, .body = "disk full"};
    }
    const auto found = values_.find(key);
    if (request.method == "GET") {
      return found == values_.end() ? HttpResponse{.status = 404, .body = "metadata not found"}
                                    : HttpResponse{.body = found->second};
    }
    if (request.method == "DELETE") {
      return values_.erase(key) == 0 ? HttpResponse{.status = 404, .body = "metadata not found"}
                                     : HttpResponse{.body = "metadata deleted"};
    }
    if (found != values_.end() && key.contains("rpc_meta")) {
      return {.status = 400, .body = "Duplicate rpc_meta key not allowed"};
    }
    EXPECT_EQ(request.Header("Content-Type"), "application/json");
    values_[key] = request.body;
    return {.body = "metadata updated"};
  }

  Mutex mutex_;
  std::map<std::string, std::string> values_ MC_GUARDED_BY(mutex_);
  std::vector<std::string> requests_ MC_GUARDED_BY(mutex_);
  bool broken_ MC_GUARDED_BY(mutex_) = false;
  HttpServer server_;  // Last: its handler uses the rest.
};

class HttpMetadataTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start()); }

  MetadataOptions Options(const std::string& name) {
    return {.connection = store_.url(),
            .local_server_name = name,
            .handshake_ports = {.min = 0, .max = 0},
            .check_interval = std::chrono::hours(1)};
  }
  std::unique_ptr<Metadata> Make(const MetadataOptions& options) {
    return HttpMetadata::Make(options, reactor_, Rng(1)).value();
  }
  std::unique_ptr<Metadata> Started(const MetadataOptions& options) {
    auto metadata = Make(options);
    const auto started = metadata->Start([] { return SegmentDescriptor{}; });
    EXPECT_TRUE(started.has_value()) << started.error().message;
    return metadata;
  }
  static SegmentDescriptor Describe(const Metadata& metadata) {
    return {.name = metadata.LocalName(),
            .tcp_data_host = metadata.DataHost(),
            .tcp_data_port = 7,
            .tcp_proto_version = 2};
  }

  FakeStore store_;
  Reactor reactor_;
};

TEST_F(HttpMetadataTest, AsksInTheOrderOfPublishedEngines) {
  const auto a = Started(Options("127.0.0.1:12345"));
  ASSERT_TRUE(a->PublishSegment(Describe(*a)));
  EXPECT_THAT(store_.TakeRequests(),
              ElementsAre("PUT mooncake/rpc_meta/127.0.0.1:12345",
                          "GET mooncake/ram/127.0.0.1:12345", "PUT mooncake/ram/127.0.0.1:12345"));
  EXPECT_EQ(store_.Value("mooncake/rpc_meta/127.0.0.1:12345"),
            EncodeRpcMeta({.host = a->DataHost(), .port = a->RpcPort()}));
  const auto b = Started(Options("b"));
  (void)store_.TakeRequests();

  ASSERT_TRUE(b->GetSegment("/127.0.0.1:12345"));
  EXPECT_THAT(store_.TakeRequests(), ElementsAre("GET mooncake/ram/127.0.0.1:12345"));
  ASSERT_TRUE(b->Probe("127.0.0.1:12345"));
  EXPECT_THAT(store_.TakeRequests(), ElementsAre("GET mooncake/rpc_meta/127.0.0.1:12345"));
  ASSERT_TRUE(b->Notify("127.0.0.1:12345", {.name = "n", .message = "m"}));
  EXPECT_THAT(store_.TakeRequests(), ElementsAre("GET mooncake/rpc_meta/127.0.0.1:12345"));
  EXPECT_EQ(a->TakeNotifies().size(), 1U);

  a->Stop();
  EXPECT_THAT(store_.TakeRequests(), ElementsAre("DELETE mooncake/rpc_meta/127.0.0.1:12345",
                                                 "DELETE mooncake/ram/127.0.0.1:12345"));
  a->Stop();
  EXPECT_TRUE(store_.TakeRequests().empty());
}

TEST_F(HttpMetadataTest, TakesTheHostFromRpcMetaWhereTheDescriptorHasNone) {
  const auto a = Started(Options("a"));
  SegmentDescriptor descriptor = Describe(*a);
  descriptor.tcp_data_host.clear();
  ASSERT_TRUE(a->PublishSegment(descriptor));
  EXPECT_EQ(a->GetSegment("a")->tcp_data_host, a->DataHost());
  ASSERT_TRUE(a->RemoveSegment("a"));
  const auto gone = a->GetSegment("a");
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_NE(gone.error().message.find("mooncake/ram/a"), std::string::npos);
  store_.SetValue("mooncake/ram/x", R"({"name":"x","protocol":"tcp","tcp_data_port":1})");
  EXPECT_EQ(a->GetSegment("x").error().code, ErrorCode::kNotFound);
}

TEST_F(HttpMetadataTest, KeepsClustersApart) {
  MetadataOptions options = Options("a");
  options.cluster_id = "blue";
  const auto blue = Started(options);
  ASSERT_TRUE(blue->PublishSegment(Describe(*blue)));
  const auto other = Started(Options("a"));
  EXPECT_EQ(other->GetSegment("a").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(blue->GetSegment("a"));
  EXPECT_TRUE(store_.Value("mooncake/blue/ram/a"));
}

TEST_F(HttpMetadataTest, IsNamedByItsAddressWhenTheUserNamedNothing) {
  const auto a = Started(Options(""));
  EXPECT_EQ(a->LocalName(), FormatHostPort(a->DataHost(), a->RpcPort()));
}

TEST_F(HttpMetadataTest, ReplacesADeadOwnerOfItsName) {
  const RefusingPort dead;
  store_.SetValue("mooncake/rpc_meta/a", EncodeRpcMeta({.host = "127.0.0.1", .port = dead.port()}));
  const auto a = Started(Options("a"));
  EXPECT_THAT(
      store_.TakeRequests(),
      ElementsAre("PUT mooncake/rpc_meta/a", "GET mooncake/rpc_meta/a",
                  "DELETE mooncake/rpc_meta/a", "PUT mooncake/rpc_meta/a", "GET mooncake/ram/a"));
  EXPECT_EQ(DecodeRpcMeta(*store_.Value("mooncake/rpc_meta/a"))->port, a->RpcPort());
}

TEST_F(HttpMetadataTest, ReplacesAnOwnerWhosePortSomebodyElseHasNow) {
  const auto other = Started(Options("other"));
  store_.SetValue("mooncake/rpc_meta/a",
                  EncodeRpcMeta({.host = other->DataHost(), .port = other->RpcPort()}));
  EXPECT_EQ(other->Probe("a").error().code, ErrorCode::kUnavailable);
  const auto a = Started(Options("a"));
  EXPECT_EQ(DecodeRpcMeta(*store_.Value("mooncake/rpc_meta/a"))->port, a->RpcPort());
}

TEST_F(HttpMetadataTest, ReplacesWhatIsNoRpcMeta) {
  store_.SetValue("mooncake/rpc_meta/a", "garbage");
  const auto a = Started(Options("a"));
  EXPECT_EQ(DecodeRpcMeta(*store_.Value("mooncake/rpc_meta/a"))->port, a->RpcPort());
}

TEST_F(HttpMetadataTest, LeavesANameToItsLivingOwner) {
  const auto first = Started(Options("a"));
  const auto before = store_.Value("mooncake/rpc_meta/a");
  const auto second = Make(Options("a"));
  const auto started = second->Start([] { return SegmentDescriptor{}; });
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code, ErrorCode::kAlreadyExists);
  for (const auto* one : {first.get(), second.get()}) {  // The error names both.
    EXPECT_NE(started.error().message.find(FormatHostPort(first->DataHost(), one->RpcPort())),
              std::string::npos)
        << started.error().message;
  }
  EXPECT_NE(second->RpcPort(), 0);
  EXPECT_EQ(store_.Value("mooncake/rpc_meta/a"), before);
}

TEST_F(HttpMetadataTest, LeavesWhatALivingProcessHasPublishedUnderItsName) {
  const auto first = Started(Options("a"));
  store_.Lose();
  const auto second = Started(Options("a"));
  ASSERT_TRUE(second->PublishSegment(Describe(*second)));
  EXPECT_EQ(first->Republish().error().code, ErrorCode::kAlreadyExists);
  first->Stop();
  EXPECT_EQ(DecodeRpcMeta(*store_.Value("mooncake/rpc_meta/a"))->port, second->RpcPort());
  EXPECT_TRUE(store_.Value("mooncake/ram/a").has_value());
  second->Stop();
  EXPECT_FALSE(store_.Value("mooncake/ram/a").has_value());
}

TEST_F(HttpMetadataTest, PublishesAgainWhatTheServerLost) {
  MetadataOptions options = Options("a");
  options.check_interval = milliseconds(10);
  const auto a = Started(options);
  ASSERT_TRUE(a->PublishSegment(Describe(*a)));
  const auto segment = store_.Value("mooncake/ram/a");
  ASSERT_TRUE(segment.has_value());
  for (int round = 0; round < 3; ++round) {
    store_.Lose();
    EXPECT_TRUE(WaitUntil([&] {
      return store_.Value("mooncake/ram/a") == segment && store_.Value("mooncake/rpc_meta/a");
    }));
  }
}

TEST_F(HttpMetadataTest, ChecksWithoutWritingWhileNothingIsLost) {
  const auto a = Started(Options("a"));
  ASSERT_TRUE(a->PublishSegment(Describe(*a)));
  (void)store_.TakeRequests();
  ASSERT_TRUE(a->Republish());
  EXPECT_THAT(store_.TakeRequests(), ElementsAre("GET mooncake/rpc_meta/a", "GET mooncake/ram/a"));
}

TEST_F(HttpMetadataTest, SurvivesAServerThatFails) {
  const auto a = Started(Options("a"));
  store_.Break(true);
  const auto published = a->PublishSegment(Describe(*a));
  ASSERT_FALSE(published.has_value());
  EXPECT_EQ(published.error().code, ErrorCode::kRejected);
  EXPECT_NE(published.error().message.find("500"), std::string::npos) << published.error().message;
  EXPECT_FALSE(a->Republish());
  store_.Break(false);
  ASSERT_TRUE(a->Republish());  // Publishes what could not be.
  EXPECT_TRUE(a->GetSegment("a"));
}

TEST_F(HttpMetadataTest, FailsToStartWithoutAServer) {
  const RefusingPort nobody;
  MetadataOptions options = Options("a");
  options.connection = "http://127.0.0.1:" + std::to_string(nobody.port()) + "/metadata";
  const auto a = Make(options);
  const auto started = a->Start([] { return SegmentDescriptor{}; });
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(a->RpcPort(), 0);  // As published engines leave it.
}

TEST_F(HttpMetadataTest, RefusesConnectionsThatAreNoUrl) {
  MetadataOptions options = Options("a");
  options.connection = "http://:8080";
  EXPECT_EQ(HttpMetadata::Make(options, reactor_, Rng(1)).error().code,
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace mooncake::transfer
