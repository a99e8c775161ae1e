#include "mooncake-store/src/client/put_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "mooncake-store/src/client/client_fixture.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Writer {
  explicit Writer(ClientCore& core) : operation(core) {}

  void Add(std::string_view key, std::vector<std::byte> bytes) {
    values.push_back(std::make_unique<std::vector<std::byte>>(std::move(bytes)));
    pieces.push_back(
        std::make_unique<SourcePiece>(SourcePiece{values.back()->data(), values.back()->size()}));
    items.push_back(PutItem{.key = key, .pieces = std::span(pieces.back().get(), 1)});
  }
  StoreCode code(std::size_t item) const { return operation.results()[item]; }

  PutOperation operation;
  std::vector<std::unique_ptr<std::vector<std::byte>>> values;
  std::vector<std::unique_ptr<SourcePiece>> pieces;
  std::vector<PutItem> items;
};

Writer Put(ClientFixture& fixture, std::string_view key, std::vector<std::byte> bytes,
           bool upsert = false) {
  Writer writer(fixture.core);
  writer.Add(key, std::move(bytes));
  writer.operation.Start(writer.items, {}, upsert);
  EXPECT_TRUE(fixture.driver.Run(writer.operation));
  return writer;
}

std::vector<std::byte> Stored(FakeMaster& master, std::string_view key, std::size_t replica = 0) {
  std::vector<std::byte> bytes;
  const auto found = master.objects.find(key);
  if (found == master.objects.end()) {
    return bytes;
  }
  for (const Extent& extent : found->second.replicas.at(replica)) {
    const auto& memory = master.segments.at(extent.segment).memory;
    const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(extent.offset_bytes);
    bytes.insert(bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(extent.length_bytes));
  }
  return bytes;
}

TEST(PutOperation, StartsMovesAndEnds) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  const Writer writer = Put(fixture, "k", PatternBytes(100, 1));
  EXPECT_EQ(writer.code(0), StoreCode::kOk);
  EXPECT_EQ(Stored(fixture.master, "k"), PatternBytes(100, 1));
  EXPECT_EQ(writer.operation.failures().count(), 0U);
  EXPECT_EQ(fixture.driver.transcript,
            "0 put start k\n"
            "1 segments 0\n"
            "2 write 1 pieces\n"
            "3 put end +k\n");
}

TEST(PutOperation, WritesEveryReplica) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Mount("b:1", 4096, Uuid{2, 2});
  fixture.master.place_on = {0, 1};
  EXPECT_EQ(Put(fixture, "k", PatternBytes(100, 1)).code(0), StoreCode::kOk);
  EXPECT_EQ(Stored(fixture.master, "k", 0), PatternBytes(100, 1));
  EXPECT_EQ(Stored(fixture.master, "k", 1), PatternBytes(100, 1));
}

TEST(PutOperation, GathersAnObjectFromManyPieces) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  const auto bytes = PatternBytes(100, 1);
  const std::vector<SourcePiece> pieces{
      {bytes.data(), 1}, {nullptr, 0}, {bytes.data() + 1, 60}, {bytes.data() + 61, 39}};
  const PutItem item{.key = "k", .pieces = pieces};
  PutOperation operation(fixture.core);
  operation.Start(std::span(&item, 1), {}, false);
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(Stored(fixture.master, "k"), bytes);
}

TEST(PutOperation, SucceedsOnAKeyThatExistsAndSaysSo) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(100, 1), {0});
  const Writer writer = Put(fixture, "k", PatternBytes(100, 2));
  EXPECT_EQ(writer.code(0), StoreCode::kOk);
  EXPECT_EQ(writer.operation.failures().code(), StoreCode::kObjectAlreadyExists);
  EXPECT_EQ(Stored(fixture.master, "k"), PatternBytes(100, 1));
}

TEST(PutOperation, UpsertReplacesAndItsOwnReaderSeesItAtOnce) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  EXPECT_EQ(Put(fixture, "k", PatternBytes(100, 1)).code(0), StoreCode::kOk);
  const auto location = std::make_shared<Location>();
  fixture.core.cache().Offer("k", location, fixture.driver.now + seconds(10),
                             fixture.core.cache().TicketFor("k"));
  EXPECT_NE(fixture.core.cache().Find("k", fixture.driver.now).location, nullptr);
  EXPECT_EQ(Put(fixture, "k", PatternBytes(200, 2), /*upsert=*/true).code(0), StoreCode::kOk);
  EXPECT_EQ(Stored(fixture.master, "k"), PatternBytes(200, 2));
  EXPECT_EQ(fixture.core.cache().Find("k", fixture.driver.now).location, nullptr);
}

TEST(PutOperation, WritesAKeyThatIsInTheCallSeveralTimesOnce) {
  for (const bool upsert : {false, true}) {
    ClientFixture fixture;
    fixture.master.Mount("a:1", 4096, Uuid{1, 1});
    Writer writer(fixture.core);
    for (unsigned i = 0; i < 6; ++i) {
      writer.Add(i % 2 == 0 ? "even" : "odd", PatternBytes(100, i));
    }
    writer.operation.Start(writer.items, {}, upsert);
    EXPECT_TRUE(fixture.driver.Run(writer.operation));
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(writer.code(i), StoreCode::kOk);
    }
    EXPECT_EQ(Stored(fixture.master, "even"), PatternBytes(100, upsert ? 4 : 0));
    EXPECT_EQ(Stored(fixture.master, "odd"), PatternBytes(100, upsert ? 5 : 1));
    EXPECT_EQ(writer.operation.failures().count(), upsert ? 0U : 4U);
  }
}

TEST(PutOperation, RefusesEmptyKeysAndValuesWithoutAskingAnybody) {
  ClientFixture fixture;
  EXPECT_EQ(Put(fixture, "k", {}).code(0), StoreCode::kInvalidParams);
  EXPECT_EQ(Put(fixture, "", PatternBytes(1, 1)).code(0), StoreCode::kInvalidParams);
  EXPECT_EQ(Put(fixture, std::string(kMaxKeyBytes + 1, 'x'), PatternBytes(1, 1)).code(0),
            StoreCode::kInvalidParams);
  EXPECT_EQ(fixture.driver.transcript, "");
}

TEST(PutOperation, WaitsForSpaceOnTheMastersHintThenSaysWhatHoldsIt) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.full = {.retry_after_ms = 30, .leased_bytes = 11, .pinned_bytes = 22};
  fixture.master.full_times = 2;
  EXPECT_EQ(Put(fixture, "k", PatternBytes(100, 1)).code(0), StoreCode::kOk);
  EXPECT_THAT(fixture.driver.transcript, testing::StartsWith("0 put start k\n"
                                                             "31 put start k\n"
                                                             "62 put start k\n"));
  fixture.master.full_times = 1000;
  const Instant begin = fixture.driver.now;
  const Writer writer = Put(fixture, "l", PatternBytes(100, 1));
  EXPECT_EQ(writer.code(0), StoreCode::kNoAvailableHandle);
  EXPECT_GE(fixture.driver.now - begin, milliseconds(100));
  EXPECT_LT(fixture.driver.now - begin, milliseconds(110));
  EXPECT_THAT(writer.operation.failures().Summary(),
              testing::HasSubstr("11 bytes are leased, 22 pinned, 0 in flight"));
}

TEST(PutOperation, DoesNotWaitForSpaceWhenToldNotTo) {
  ClientFixture fixture({.put_wait = Duration(0)});
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.full_times = 1000;
  EXPECT_EQ(Put(fixture, "l", PatternBytes(100, 1)).code(0), StoreCode::kNoAvailableHandle);
  EXPECT_EQ(fixture.driver.transcript, "0 put start l\n");
}

TEST(PutOperation, RevokesReportsAndPlacesAnewWhatCouldNotBeWritten) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Mount("b:1", 4096, Uuid{2, 2});
  fixture.dead_segments = {0};
  fixture.after_move = [&] { fixture.master.place_on = {1}; };
  EXPECT_EQ(Put(fixture, "k", PatternBytes(100, 1)).code(0), StoreCode::kOk);
  EXPECT_EQ(Stored(fixture.master, "k"), PatternBytes(100, 1));
  EXPECT_EQ(fixture.driver.transcript,
            "0 put start k\n"
            "1 segments 0\n"
            "2 write 1 pieces\n"
            "3 report 1 segments\n"
            "3 put end -k\n"
            "4 put start k\n"
            "5 segments 1\n"
            "6 write 1 pieces\n"
            "7 put end +k\n");
}

TEST(PutOperation, GivesUpInWordsWhenNoPlaceCanBeWritten) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.dead_segments = {0};
  const Writer writer = Put(fixture, "k", PatternBytes(100, 1));
  EXPECT_EQ(writer.code(0), StoreCode::kTransferFail);
  EXPECT_TRUE(fixture.master.open.empty());
  EXPECT_FALSE(fixture.master.objects.contains("k"));
  EXPECT_THAT(writer.operation.failures().Summary(),
              testing::AllOf(testing::HasSubstr("put \"k\""), testing::HasSubstr("a:1"),
                             testing::HasSubstr("connection refused")));
}

TEST(PutOperation, FailsOneKeyWithoutHarmToTheOthers) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("exists", PatternBytes(1, 1), {0});
  Writer writer(fixture.core);
  writer.Add("a", PatternBytes(10, 1));
  writer.Add("exists", PatternBytes(10, 2));
  writer.Add("b", {});
  writer.Add("c", PatternBytes(10, 3));
  writer.operation.Start(writer.items, {}, false);
  EXPECT_TRUE(fixture.driver.Run(writer.operation));
  EXPECT_EQ(writer.code(0), StoreCode::kOk);
  EXPECT_EQ(writer.code(1), StoreCode::kOk);
  EXPECT_EQ(writer.code(2), StoreCode::kInvalidParams);
  EXPECT_EQ(writer.code(3), StoreCode::kOk);
  EXPECT_EQ(Stored(fixture.master, "c"), PatternBytes(10, 3));
}

// The start was carried out and its answer lost: the key must not be taken for somebody else's.
TEST(PutOperation, DoesNotMistakeItsOwnLostStartForAnotherWriter) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.calls_lost = 1;
  fixture.lost_are_served = true;
  const Writer writer = Put(fixture, "k", PatternBytes(100, 1));
  EXPECT_EQ(writer.code(0), StoreCode::kOk);
  EXPECT_EQ(writer.operation.failures().count(), 0U);
  EXPECT_EQ(Stored(fixture.master, "k"), PatternBytes(100, 1));
}

TEST(PutOperation, RepeatsAnEndWhoseAnswerWasLost) {
  for (const bool served : {false, true}) {
    ClientFixture fixture;
    fixture.master.Mount("a:1", 4096, Uuid{1, 1});
    fixture.lost_are_served = served;
    fixture.after_move = [&] { fixture.calls_lost = 1; };
    EXPECT_EQ(Put(fixture, "k", PatternBytes(100, 1)).code(0), StoreCode::kOk);
    EXPECT_EQ(Stored(fixture.master, "k"), PatternBytes(100, 1));
  }
}

TEST(PutOperation, StartsAnewWhenTheMasterForgotTheWrite) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  bool forgotten = false;
  fixture.after_move = [&] {
    if (!std::exchange(forgotten, true)) {
      fixture.master.open.clear();
    }
  };
  EXPECT_EQ(Put(fixture, "k", PatternBytes(100, 1)).code(0), StoreCode::kOk);
  EXPECT_EQ(Stored(fixture.master, "k"), PatternBytes(100, 1));
}

TEST(PutOperation, SaysThatTheOutcomeIsUnknownWhenTheMasterDiesAtTheEnd) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.after_move = [&] { fixture.calls_lost = 1'000'000; };
  const Writer writer = Put(fixture, "k", PatternBytes(100, 1));
  EXPECT_EQ(writer.code(0), StoreCode::kRpcFail);
  EXPECT_THAT(writer.operation.failures().Summary(), testing::HasSubstr("is not known"));
}

TEST(PutOperation, SendsTheNextStartWhileAWindowMoves) {
  ClientFixture fixture({.window_keys = 2});
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.driver.transfer_time = milliseconds(10);
  Writer writer(fixture.core);
  const std::vector<std::string> keys{"a", "b", "c", "d", "e"};
  for (const std::string& key : keys) {
    writer.Add(key, PatternBytes(10, static_cast<unsigned>(key[0])));
  }
  writer.operation.Start(writer.items, {}, false);
  EXPECT_TRUE(fixture.driver.Run(writer.operation));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(writer.code(i), StoreCode::kOk);
    EXPECT_EQ(Stored(fixture.master, keys[i]), PatternBytes(10, static_cast<unsigned>(keys[i][0])));
  }
  EXPECT_EQ(fixture.driver.transcript,
            "0 put start a b\n"
            "1 segments 0\n"
            "2 write 2 pieces\n"
            "2 put start c d\n"
            "3 write 2 pieces\n"
            "12 put end +a +b\n"
            "12 put start e\n"
            "13 put end +c +d\n"
            "13 write 1 pieces\n"
            "23 put end +e\n");
}

TEST(PutOperation, CutsWindowsByBytesButNeverAnObject) {
  ClientFixture fixture({.window_bytes = 100});
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  Writer writer(fixture.core);
  writer.Add("a", PatternBytes(60, 1));
  writer.Add("b", PatternBytes(60, 2));
  writer.Add("c", PatternBytes(300, 3));
  writer.operation.Start(writer.items, {}, false);
  EXPECT_TRUE(fixture.driver.Run(writer.operation));
  EXPECT_EQ(Stored(fixture.master, "c"), PatternBytes(300, 3));
  EXPECT_THAT(fixture.driver.transcript, testing::HasSubstr("put start a\n"));
  EXPECT_THAT(fixture.driver.transcript, testing::HasSubstr("put start b\n"));
  EXPECT_THAT(fixture.driver.transcript, testing::HasSubstr("put start c\n"));
}

}  // namespace
}  // namespace mooncake::store
