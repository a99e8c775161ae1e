// The client as C++ programs use it, with a master of the process.
#include "mooncake-store/include/mooncake/store/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/net/acceptor.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-store/src/server/server_test_util.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/factory.h"

namespace mooncake::store {
namespace {

class ClientTest : public ServerTest {
 protected:
  void SetUp() override { Begin(); }
  void TearDown() override {
    for (const auto& client : clients_) {
      client->Close();
    }
    clients_.clear();
    server_->Stop();
  }

  Client* Join(std::uint64_t segment_bytes, std::shared_ptr<transfer::Engine> engine = nullptr) {
    ClientSettings settings;
    settings.engine = std::move(engine);
    settings.local_hostname = settings.engine ? settings.engine->name() : "127.0.0.1";
    settings.metadata_server = "P2PHANDSHAKE";
    settings.global_segment_bytes = segment_bytes;
    settings.local_buffer_bytes = 1 << 20;
    settings.master_address = fmt::format("127.0.0.1:{}", server_->rpc_port());
    auto client = Client::Create(settings);
    EXPECT_TRUE(client) << client.error().text;
    clients_.push_back(*std::move(client));
    return clients_.back().get();
  }
  // The one that joined last.
  void Leave() {
    clients_.back()->Close();
    clients_.pop_back();
  }

 private:
  std::vector<std::unique_ptr<Client>> clients_;
};

std::shared_ptr<transfer::Engine> StartEngine() {
  auto engine = transfer::CreateEngine({.local_name = "127.0.0.1", .metadata = "P2PHANDSHAKE"});
  EXPECT_TRUE(engine) << engine.error().ToString();
  return *std::move(engine);
}

StoreCode Put(Client& client, std::string_view key, const std::string& value) {
  const SourcePiece piece{.memory = reinterpret_cast<const std::byte*>(value.data()),
                          .length_bytes = value.size()};
  const PutItem item{.key = key, .pieces = std::span(&piece, 1)};
  return client.Put(std::span(&item, 1), {}, /*upsert=*/false).front();
}

TEST_F(ClientTest, LocatesAndLeasesTheObjectsOfAPattern) {
  Client& owner = *Join(1 << 20);
  Client& other = *Join(0);  // Has met no segment yet.
  for (const char* key : {"a/1", "a/2", "b/1"}) {
    ASSERT_EQ(Put(owner, key, "value of " + std::string(key)), StoreCode::kOk);
  }
  const auto found = other.ReplicasByRegex("^a/");
  ASSERT_TRUE(found) << found.error().text;
  ASSERT_EQ(found->size(), 2U);
  for (const auto& [key, replicas] : *found) {
    EXPECT_THAT(key, testing::StartsWith("a/"));
    ASSERT_EQ(replicas.size(), 1U);
    EXPECT_EQ(replicas[0].size_bytes, 12U);
    EXPECT_EQ(replicas[0].extents.at(0).segment->info.name, owner.hostname());
  }
  const std::vector<std::string_view> keys{"a/1", "a/2", "b/1"};
  EXPECT_THAT(
      other.Remove(keys, false),
      testing::ElementsAre(StoreCode::kObjectHasLease, StoreCode::kObjectHasLease, StoreCode::kOk));
  EXPECT_TRUE(other.ReplicasByRegex("nothing")->empty());
  const auto refused = other.ReplicasByRegex("[");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StoreCode::kInvalidParams);
  EXPECT_EQ(LastError().text, refused.error().text);
}

TEST_F(ClientTest, KnowsWhereTheSegmentsOfClientsAreReached) {
  Client& owner = *Join(1 << 20);
  Client& other = *Join(0);
  ASSERT_TRUE(owner.AllocateAndMount(1 << 20));
  const std::vector<Uuid> clients{other.id(), owner.id(), Uuid{1, 2}};
  const auto hosts = other.HostsOf(clients);
  ASSERT_TRUE(hosts) << hosts.error().text;
  EXPECT_THAT(*hosts, testing::ElementsAre(testing::IsEmpty(), testing::ElementsAre("127.0.0.1"),
                                           testing::IsEmpty()));
}

// Answers nothing: it closes each connection that it takes.
class SilentPeer {
 public:
  SilentPeer() : acceptor_(reactor_, "silent peer") {
    auto listener = SocketListen("127.0.0.1", 0);
    endpoint_ = fmt::format("127.0.0.1:{}", LocalPort(listener->get()).value());
    EXPECT_TRUE(reactor_.Start());
    EXPECT_TRUE(acceptor_.Start(*std::move(listener),
                                [this](UniqueFd, const SocketAddress&) { ++connections_; }));
  }
  ~SilentPeer() {
    acceptor_.Stop();
    reactor_.Stop();
  }
  const std::string& endpoint() const { return endpoint_; }
  int connections() const { return connections_; }

 private:
  std::atomic<int> connections_{0};
  std::string endpoint_;
  Reactor reactor_;
  Acceptor acceptor_;
};

// Each question to a peer that stands still takes seconds.
TEST_F(ClientTest, AsksAPeerThatCannotBeReachedOnceForAllThatLiesOnIt) {
  const std::string value = "value";
  const auto connections = [&](std::size_t count) {
    const SilentPeer peer;
    TestCaller owner(server_->rpc_port(), {count, 1});
    EXPECT_EQ(owner.Mount(1 << 20, "segment", peer.endpoint()), StoreCode::kOk);
    Client& client = *Join(0);
    const SourcePiece piece{.memory = reinterpret_cast<const std::byte*>(value.data()),
                            .length_bytes = value.size()};
    std::vector<std::string> keys(count);
    std::vector<PutItem> items(count);
    for (std::size_t i = 0; i < count; ++i) {
      keys[i] = fmt::format("{}/{}", count, i);
      items[i] = {.key = keys[i], .pieces = std::span(&piece, 1)};
    }
    for (const StoreCode code : client.Put(items, {}, /*upsert=*/false)) {
      EXPECT_NE(code, StoreCode::kOk);
    }
    EXPECT_EQ(owner
                  .Call<UnmountSegmentReply>(Method::kUnmountSegment,
                                             UnmountSegmentRequest{.segment = {count, 7}})
                  .code,
              StoreCode::kOk);
    return peer.connections();
  };
  const int for_one = connections(1);
  EXPECT_GT(for_one, 0);
  EXPECT_EQ(connections(16), for_one);
}

TEST_F(ClientTest, StandsOnAnEngineThatIsThereAlready) {
  const auto engine = StartEngine();
  std::vector<std::byte> memory(1 << 16);
  const transfer::MemoryRegistration users{.address = memory.data(), .length_bytes = 1 << 15};
  ASSERT_TRUE(engine->RegisterMemory(std::span(&users, 1)));

  Client& client = *Join(1 << 20, engine);
  EXPECT_EQ(client.hostname(), engine->name());
  EXPECT_TRUE(client.IsRegistered(memory.data(), 1 << 15, MemoryAccess::kWrite));
  EXPECT_FALSE(client.IsRegistered(memory.data(), (1 << 15) + 1, MemoryAccess::kRead));
  EXPECT_EQ(client.RegisterBuffer(memory.data(), 1 << 16), StoreCode::kInvalidParams) << "overlaps";
  EXPECT_EQ(client.RegisterBuffer(memory.data(), 1 << 15), StoreCode::kOk);
  EXPECT_EQ(client.UnregisterBuffer(memory.data()), StoreCode::kOk);
  EXPECT_TRUE(engine->HoldsRegistered(memory.data(), 1 << 15)) << "its user's, not the client's";
  ASSERT_EQ(Put(client, "key", "value"), StoreCode::kOk);
  EXPECT_EQ(Join(0)->Size("key"), 5) << "reached through the engine";
}

TEST_F(ClientTest, GivesTheMemoryOfASegmentBackWhenItIsUnmounted) {
  const auto engine = StartEngine();
  Client& client = *Join(0, engine);
  const auto segments = [&] { return engine->LocalDescriptor()->buffers.size(); };
  const auto plain = client.AllocateAndMount(1 << 20);
  ASSERT_TRUE(plain) << plain.error().text;
  ASSERT_EQ(Put(client, "key", "value"), StoreCode::kOk);
  EXPECT_EQ(segments(), 1U);
  EXPECT_EQ(client.Unmount(*plain, 0), StoreCode::kOk);
  EXPECT_EQ(segments(), 0U);
  EXPECT_EQ(client.Size("key"), static_cast<int>(StoreCode::kObjectNotFound));
  EXPECT_EQ(client.Unmount(*plain, 0), StoreCode::kSegmentNotFound) << "a second time";
  EXPECT_EQ(client.Unmount(*plain, 1), StoreCode::kSegmentNotFound);

  const auto graceful = client.AllocateAndMount(1 << 20);
  ASSERT_TRUE(graceful);
  ASSERT_EQ(Put(client, "key", "value"), StoreCode::kOk);
  EXPECT_EQ(client.Unmount(*graceful, kMaxGraceMs + 1), StoreCode::kOk) << "longer than can be";
  EXPECT_EQ(client.Size("key"), 5) << "readable until the grace has ended";
  EXPECT_EQ(Put(client, "other", "value"), StoreCode::kNoAvailableHandle);
  EXPECT_EQ(client.Unmount(*graceful, 1), StoreCode::kOk) << "no, soon";
  EXPECT_TRUE(WaitUntil([&] { return segments() == 0; }));
  EXPECT_EQ(client.Size("key"), static_cast<int>(StoreCode::kObjectNotFound));

  const auto unfinished = client.AllocateAndMount(1 << 20);
  ASSERT_TRUE(unfinished);
  EXPECT_EQ(client.Unmount(*unfinished, 3'600'000), StoreCode::kOk);
  Leave();
  EXPECT_EQ(segments(), 0U) << "closing does not wait for it";
}

TEST_F(ClientTest, TakesItsBuffersOutOfAnEngineThatGoesOn) {
  const auto engine = StartEngine();
  std::vector<std::byte> memory(1 << 16);
  const transfer::MemoryRegistration users{.address = memory.data(), .length_bytes = 1 << 15};
  ASSERT_TRUE(engine->RegisterMemory(std::span(&users, 1)));
  for (int again = 0; again < 2; ++again) {
    Client& client = *Join(1 << 20, engine);
    ASSERT_EQ(client.RegisterBuffer(memory.data(), 1 << 10), StoreCode::kOk) << "the user's";
    ASSERT_EQ(client.RegisterBuffer(memory.data() + (1 << 15), 1 << 15), StoreCode::kOk);
    EXPECT_TRUE(engine->HoldsRegistered(memory.data() + (1 << 15), 1 << 15));
    Leave();
    EXPECT_FALSE(engine->OverlapsRegistered(memory.data() + (1 << 15), 1 << 15));
    EXPECT_TRUE(engine->HoldsRegistered(memory.data(), 1 << 15));
  }
  EXPECT_EQ(engine->LocalDescriptor()->buffers.size(), 1U) << "no segment of the store is left";
}

}  // namespace
}  // namespace mooncake::store
