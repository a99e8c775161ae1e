#include "mooncake-store/src/client/get_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "mooncake-store/src/client/client_fixture.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Reads whole objects into buffers of their own.
struct Reader {
  explicit Reader(ClientCore& core) : operation(core) {}

  void Add(std::string_view key, std::size_t room) {
    buffers.push_back(std::make_unique<std::vector<std::byte>>(room));
    fragments.push_back(std::make_unique<Fragment>(Fragment{buffers.back()->data(), 0, room}));
    items.push_back(GetItem{.key = key, .fragments = std::span(fragments.back().get(), 1)});
  }
  StoreCode code(std::size_t item) const { return operation.results()[item].code; }

  GetOperation operation;
  std::vector<std::unique_ptr<std::vector<std::byte>>> buffers;
  std::vector<std::unique_ptr<Fragment>> fragments;
  std::vector<GetItem> items;
};

Reader Get(ClientFixture& fixture, std::string_view key, std::size_t room) {
  Reader reader(fixture.core);
  reader.Add(key, room);
  reader.operation.Start(reader.items);
  EXPECT_TRUE(fixture.driver.Run(reader.operation));
  return reader;
}

TEST(GetOperation, AsksResolvesAndReadsThenNeedsNoRpcUnderTheLease) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  const Reader first = Get(fixture, "k", 100);
  EXPECT_EQ(first.code(0), StoreCode::kOk);
  EXPECT_EQ(first.operation.results()[0].bytes, 100U);
  EXPECT_EQ(*first.buffers[0], PatternBytes(100, 1));
  const Reader second = Get(fixture, "k", 200);
  EXPECT_EQ(second.operation.results()[0].bytes, 100U);
  EXPECT_EQ(fixture.driver.transcript,
            "0 lookup k\n"
            "1 segments 0\n"
            "2 read 1 pieces\n"
            "3 read 1 pieces\n");
}

TEST(GetOperation, ReportsCacheHitsWithTheNextCall) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  (void)Get(fixture, "k", 100);
  (void)Get(fixture, "k", 100);
  (void)Get(fixture, "k", 100);
  (void)Get(fixture, "other", 100);
  EXPECT_EQ(fixture.master.cache_hits, 2U);
}

TEST(GetOperation, AsksAgainWhenTheLeaseIsOverOrTheCacheIsOff) {
  for (const bool cache : {true, false}) {
    ClientFixture fixture({.descriptor_cache = cache});
    fixture.master.Mount("a:1", 4096, Uuid{1, 1});
    fixture.master.Make("k", PatternBytes(100, 1), {0});
    (void)Get(fixture, "k", 100);
    if (cache) {
      fixture.driver.now += seconds(10);
    }
    fixture.driver.transcript.clear();
    (void)Get(fixture, "k", 100);
    EXPECT_THAT(fixture.driver.transcript, testing::HasSubstr("lookup k")) << cache;
  }
}

TEST(GetOperation, NeverCachesWhatWasUpserted) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0}).from_put = false;
  (void)Get(fixture, "k", 100);
  fixture.driver.transcript.clear();
  (void)Get(fixture, "k", 100);
  EXPECT_THAT(fixture.driver.transcript, testing::HasSubstr("lookup k"));
}

TEST(GetOperation, GivesEachKeyItsOwnCodeAndTellsWhy) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  Reader reader(fixture.core);
  reader.Add("missing", 100);
  reader.Add("k", 99);
  reader.Add("", 100);
  reader.Add("k", 100);
  reader.operation.Start(reader.items);
  EXPECT_TRUE(fixture.driver.Run(reader.operation));
  EXPECT_EQ(reader.code(0), StoreCode::kObjectNotFound);
  EXPECT_EQ(reader.code(1), StoreCode::kInvalidParams);
  EXPECT_EQ(reader.code(2), StoreCode::kInvalidParams);
  EXPECT_EQ(reader.code(3), StoreCode::kOk);
  ASSERT_EQ(reader.operation.failures().count(), 3U);
  std::string all;
  for (const Failure& failure : reader.operation.failures().kept()) {
    all += failure.text + "\n";
  }
  EXPECT_THAT(all, testing::HasSubstr("OBJECT_NOT_FOUND (-704): get \"missing\""));
  EXPECT_THAT(all, testing::HasSubstr("it has 100 bytes, the buffer only 99"));
}

TEST(GetOperation, ReadsAnObjectOfManyExtentsIntoManyBuffers) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(1000, 3), {0}, 64);
  std::vector<std::byte> into(1200);
  const std::vector<Fragment> fragments{
      {into.data(), 0, 10}, {into.data() + 10, 0, 500}, {into.data() + 510, 0, 690}};
  const GetItem item{.key = "k", .fragments = fragments};
  GetOperation operation(fixture.core);
  operation.Start(std::span(&item, 1));
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(operation.results()[0].bytes, 1000U);
  into.resize(1000);
  EXPECT_EQ(into, PatternBytes(1000, 3));
}

TEST(GetOperation, ReadsRangesAndRefusesOnlyThoseOutsideTheObject) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  const auto bytes = PatternBytes(1000, 3);
  fixture.master.Make("k", bytes, {0}, 100);
  std::vector<std::byte> into(600);
  const std::vector<Fragment> fragments{
      {into.data(), 950, 50}, {into.data() + 100, 951, 50}, {into.data() + 200, 77, 300}};
  std::vector<std::int64_t> results(3);
  const GetItem item{.key = "k", .fragments = fragments, .fragment_results = results.data()};
  GetOperation operation(fixture.core);
  operation.Start(std::span(&item, 1));
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(results, (std::vector<std::int64_t>{50, -600, 300}));
  EXPECT_TRUE(std::equal(into.begin(), into.begin() + 50, bytes.begin() + 950));
  EXPECT_TRUE(std::equal(into.begin() + 200, into.begin() + 500, bytes.begin() + 77));
  EXPECT_EQ(operation.failures().count(), 1U);
}

TEST(GetOperation, TellsAMissToEveryRangeOfTheKey) {
  ClientFixture fixture;
  std::vector<std::byte> into(10);
  const std::vector<Fragment> fragments{{into.data(), 0, 5}, {into.data() + 5, 0, 5}};
  std::vector<std::int64_t> results(2);
  const GetItem item{.key = "k", .fragments = fragments, .fragment_results = results.data()};
  GetOperation operation(fixture.core);
  operation.Start(std::span(&item, 1));
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(results, (std::vector<std::int64_t>{-704, -704}));
}

TEST(GetOperation, AsksTheProviderForMemoryOnceTheSizeIsKnown) {
  struct Provider final : DestinationProvider {
    std::byte* Provide(std::uint32_t, std::uint64_t size) override {
      bytes.resize(size);
      return size > 500 ? nullptr : bytes.data();
    }
    std::vector<std::byte> bytes;
  };
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  fixture.master.Make("large", PatternBytes(1000, 1), {0});
  Provider provider;
  GetOperation operation(fixture.core);
  const std::vector<GetItem> items{{.key = "k"}};
  operation.Start(items, &provider);
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(provider.bytes, PatternBytes(100, 1));
  const std::vector<GetItem> large{{.key = "large"}};
  operation.Start(large, &provider);
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(operation.results()[0].code, StoreCode::kInvalidParams);
}

TEST(GetOperation, PrefersOwnMemoryThenTheHostThenTheRest) {
  ClientFixture fixture({.host_id = "h"});
  fixture.master.Mount("far:1", 4096, Uuid{1, 1}, "other");
  fixture.master.Mount("near:1", 4096, Uuid{2, 2}, "h");
  fixture.master.Mount("own:1", 4096, Uuid{7, 7}, "h");
  fixture.master.Make("k", PatternBytes(100, 1), {0, 1, 2});
  fixture.master.Make("l", PatternBytes(100, 1), {0, 1});
  fixture.dead_segments = {0, 1};
  EXPECT_EQ(Get(fixture, "k", 100).code(0), StoreCode::kOk);
  fixture.dead_segments = {0, 2};
  EXPECT_EQ(Get(fixture, "l", 100).code(0), StoreCode::kOk);
  EXPECT_TRUE(fixture.master.failed_reads.empty());
}

TEST(GetOperation, ReadsTheNextReplicaWhenOneFailsAndReportsIt) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Mount("b:1", 4096, Uuid{2, 2});
  fixture.master.Make("k", PatternBytes(100, 1), {0, 1});
  fixture.dead_segments = {0};
  const Reader reader = Get(fixture, "k", 100);
  EXPECT_EQ(reader.code(0), StoreCode::kOk);
  EXPECT_EQ(*reader.buffers[0], PatternBytes(100, 1));
  EXPECT_EQ(fixture.driver.transcript,
            "0 lookup k\n"
            "1 segments 0 1\n"
            "2 read 1 pieces\n"
            "3 report 1 segments\n"
            "3 read 1 pieces\n");
  ASSERT_EQ(fixture.master.failed_reads.size(), 1U);
  // The suspect is not tried first for a while.
  fixture.driver.transcript.clear();
  (void)Get(fixture, "k", 100);
  EXPECT_EQ(fixture.driver.transcript, "4 read 1 pieces\n");
}

TEST(GetOperation, AsksAnewWhenEveryReplicaFailedThenGivesUpNamingThePeer) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  fixture.dead_segments = {0};
  const Reader reader = Get(fixture, "k", 100);
  EXPECT_EQ(reader.code(0), StoreCode::kTransferFail);
  EXPECT_THAT(reader.operation.failures().Summary(),
              testing::AllOf(testing::HasSubstr("TRANSFER_FAIL (-800): get \"k\""),
                             testing::HasSubstr("a:1"), testing::HasSubstr("connection refused")));
}

TEST(GetOperation, DoesNotTryOtherReplicasWhenTheCallersMemoryIsAtFault) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  ScriptedDriver driver(
      [&](const MasterCall& call) -> std::optional<Error> {
        fixture.master.Serve(call);
        return std::nullopt;
      },
      [](const TransferBatch&) {
        return std::vector<PieceFailure>{
            {0, Error{ErrorCode::kInvalidArgument, "0x10 is not mapped"}}};
      });
  Reader reader(fixture.core);
  reader.Add("k", 100);
  reader.operation.Start(reader.items);
  EXPECT_TRUE(driver.Run(reader.operation));
  EXPECT_EQ(reader.code(0), StoreCode::kInvalidParams);
  EXPECT_TRUE(fixture.master.failed_reads.empty());
}

TEST(GetOperation, TakesTheNextReplicaWhenAPeerNoLongerOffersTheRange) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Mount("b:1", 4096, Uuid{2, 2});
  fixture.master.Make("k", PatternBytes(100, 1), {0, 1});
  int moves = 0;
  ScriptedDriver driver(
      [&](const MasterCall& call) -> std::optional<Error> {
        fixture.master.Serve(call);
        return std::nullopt;
      },
      [&](const TransferBatch& batch) {
        return ++moves == 1
                   ? std::vector<PieceFailure>{{0, Error{ErrorCode::kAddressNotRegistered,
                                                         "not inside one buffer that it offers"}}}
                   : fixture.Move(batch);
      });
  Reader reader(fixture.core);
  reader.Add("k", 100);
  reader.operation.Start(reader.items);
  EXPECT_TRUE(driver.Run(reader.operation));
  EXPECT_EQ(reader.code(0), StoreCode::kOk);
  EXPECT_EQ(fixture.master.failed_reads.size(), 1U);
}

TEST(GetOperation, RenewsTheLeaseWhileALongReadRuns) {
  ClientFixture fixture;
  fixture.master.lease_ttl_ms = 500;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  fixture.driver.transfer_time = milliseconds(1200);
  const Reader reader = Get(fixture, "k", 100);
  EXPECT_EQ(reader.code(0), StoreCode::kOk);
  EXPECT_EQ(fixture.driver.transcript,
            "0 lookup k\n"
            "1 segments 0\n"
            "2 read 1 pieces\n"
            "251 lookup k\n"
            "501 lookup k\n"
            "752 lookup k\n"
            "1002 lookup k\n");
}

TEST(GetOperation, KeepsBytesThatOutlivedTheirLeaseWhenTheVersionIsStillThere) {
  ClientFixture fixture;
  fixture.master.lease_ttl_ms = 500;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  (void)Get(fixture, "k", 100);
  fixture.driver.now += milliseconds(490);
  fixture.driver.transcript.clear();
  fixture.driver.transfer_time = milliseconds(20);
  fixture.driver.call_time = milliseconds(100);  // The renewal comes too late to help in time.
  const Reader reader = Get(fixture, "k", 100);
  EXPECT_EQ(reader.code(0), StoreCode::kOk);
  EXPECT_THAT(fixture.driver.transcript, testing::HasSubstr("lookup k"));
}

// The third call is the renewal: its answer comes while the bytes move, or only after.
TEST(GetOperation, SaysLeaseExpiredOnlyWhenTheObjectIsGone) {
  for (const auto call_time : {milliseconds(1), milliseconds(100)}) {
    ClientFixture fixture;
    fixture.master.lease_ttl_ms = 210;
    fixture.master.Mount("a:1", 4096, Uuid{1, 1});
    fixture.master.Make("k", PatternBytes(100, 1), {0});
    fixture.driver.call_time = call_time;
    fixture.driver.transfer_time = milliseconds(300);
    fixture.before_call = [&](int call) {
      if (call == 3) {
        fixture.master.objects.clear();
      }
    };
    const Reader reader = Get(fixture, "k", 100);
    EXPECT_EQ(reader.code(0), StoreCode::kLeaseExpired);
    EXPECT_THAT(reader.operation.failures().Summary(), testing::HasSubstr("while it was read"));
  }
}

// The third call renews a lease that ends before the bytes do: only a fourth can tell.
TEST(GetOperation, AsksOnceMoreWhenARenewalDoesNotCoverTheEndOfTheMove) {
  for (const bool removed : {false, true}) {
    ClientFixture fixture;
    fixture.master.lease_ttl_ms = 10;
    fixture.master.Mount("a:1", 4096, Uuid{1, 1});
    fixture.master.Make("k", PatternBytes(100, 1), {0});
    fixture.driver.call_time = milliseconds(100);
    fixture.driver.transfer_time = milliseconds(50);
    fixture.before_call = [&](int call) {
      if (call == 4 && removed) {
        fixture.master.objects.clear();
      }
    };
    const Reader reader = Get(fixture, "k", 100);
    EXPECT_EQ(reader.code(0), removed ? StoreCode::kLeaseExpired : StoreCode::kOk);
    EXPECT_EQ(fixture.calls, 4);
  }
}

TEST(GetOperation, ReadsTheNewVersionWhenTheOldOneWasReplacedMeanwhile) {
  for (const auto call_time : {milliseconds(1), milliseconds(100)}) {
    ClientFixture fixture;
    fixture.master.lease_ttl_ms = 210;
    fixture.master.Mount("a:1", 4096, Uuid{1, 1});
    fixture.master.Make("k", PatternBytes(100, 1), {0});
    fixture.driver.call_time = call_time;
    fixture.driver.transfer_time = milliseconds(300);
    const auto bytes = PatternBytes(90, 2);
    fixture.before_call = [&](int call) {
      if (call == 3) {
        fixture.master.Make("k", bytes, {0}).from_put = false;
      }
    };
    const Reader reader = Get(fixture, "k", 100);
    EXPECT_EQ(reader.code(0), StoreCode::kOk);
    EXPECT_EQ(reader.operation.results()[0].bytes, 90U);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), reader.buffers[0]->begin()));
  }
}

TEST(GetOperation, KeepsAskingWhileTheMasterIsAwayAndGivesUpInWords) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  fixture.calls_lost = 5;
  EXPECT_EQ(Get(fixture, "k", 100).code(0), StoreCode::kOk);
  fixture.core.cache().Clear();
  fixture.calls_lost = 1'000'000;
  const Instant begin = fixture.driver.now;
  const Reader reader = Get(fixture, "k", 100);
  EXPECT_EQ(reader.code(0), StoreCode::kRpcFail);
  EXPECT_GE(fixture.driver.now - begin, fixture.core.options().master_patience);
  EXPECT_LT(fixture.driver.now - begin, fixture.core.options().master_patience + seconds(1));
  EXPECT_THAT(reader.operation.failures().Summary(), testing::HasSubstr("connection reset"));
}

TEST(GetOperation, DoesNotWaitForARenewalOnceAllIsRead) {
  ClientFixture fixture;
  fixture.master.lease_ttl_ms = 500;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  (void)Get(fixture, "k", 100);
  fixture.core.cache().Clear();
  fixture.driver.transcript.clear();
  fixture.driver.transfer_time = milliseconds(300);
  fixture.driver.call_time = milliseconds(100);
  EXPECT_EQ(Get(fixture, "k", 100).code(0), StoreCode::kOk);
  EXPECT_EQ(fixture.driver.transcript,
            "3 lookup k\n"
            "103 read 1 pieces\n"
            "303 lookup k\n"
            "403 forget\n");
}

// Goal: a batch of thousands works with a short lease. Method: 5000 keys in windows, each of whose
// moves takes longer than the lease.
TEST(GetOperation, ReadsALargeBatchUnderAShortLeaseInWindows) {
  ClientFixture fixture({.window_bytes = 4096});
  fixture.master.lease_ttl_ms = 50;
  fixture.master.Mount("a:1", 1 << 20, Uuid{1, 1});
  fixture.driver.transfer_time = milliseconds(60);
  std::vector<std::string> keys;
  for (int i = 0; i < 5000; ++i) {
    keys.push_back(fmt::format("key{}", i));
    if (i % 500 != 0) {
      fixture.master.Make(keys.back(), PatternBytes(64, static_cast<unsigned>(i)), {0});
    }
  }
  Reader reader(fixture.core);
  for (const std::string& key : keys) {
    reader.Add(key, 64);
  }
  reader.operation.Start(reader.items);
  EXPECT_TRUE(fixture.driver.Run(reader.operation));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 500 == 0) {
      EXPECT_EQ(reader.code(i), StoreCode::kObjectNotFound);
    } else {
      ASSERT_EQ(reader.code(i), StoreCode::kOk) << i;
      ASSERT_EQ(*reader.buffers[i], PatternBytes(64, static_cast<unsigned>(i)));
    }
  }
  // The second window's question travels while the first one's bytes move.
  EXPECT_TRUE(
      fixture.driver.transcript.starts_with("0 lookup key0..key1023 (1024)\n"
                                            "0 lookup key1024..key2047 (1024)\n"))
      << fixture.driver.transcript.substr(0, 200);
}

}  // namespace
}  // namespace mooncake::store
