#include "mooncake-store/src/master/master.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

#include "mooncake-store/src/master/master_test_util.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kPage = 4096;

TEST(Master, APutIsReadableOnceItEnded) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  EXPECT_EQ(test.Get("a"), StoreCode::kObjectNotFound);
  ASSERT_EQ(test.Start("a", 100), StoreCode::kOk);
  EXPECT_FALSE(test.Exists("a"));
  EXPECT_EQ(test.Get("a"), StoreCode::kReplicaIsNotReady);
  EXPECT_EQ(test.Remove("a", true), StoreCode::kReplicaIsNotReady);
  const Extent written = test.started.table.extents.at(0);
  ASSERT_EQ(test.End("a", 1, {.has_checksum = true, .checksum = 77}), StoreCode::kOk);
  EXPECT_TRUE(test.Exists("a"));
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  const ObjectLocation& object = test.got.objects[0];
  EXPECT_EQ(object.size_bytes, 100U);
  EXPECT_EQ(object.version, test.started.results[0].version);
  EXPECT_TRUE(object.from_put);
  EXPECT_EQ(object.checksum, 77U);
  EXPECT_EQ(test.GotExtents(), std::vector<Extent>{written});
  EXPECT_EQ(written.length_bytes, 100U);
  EXPECT_EQ(test.got.lease_ttl_ms, 1000U);
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

TEST(Master, RefusesWhatCannotBePut) {
  TestMaster test;
  EXPECT_EQ(test.Start("a", 100), StoreCode::kNoAvailableHandle);  // No segment at all.
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  EXPECT_EQ(test.Start("", 100), StoreCode::kInvalidParams);
  EXPECT_EQ(test.Start("a", 0), StoreCode::kInvalidParams);
  EXPECT_EQ(test.Start(std::string(kMaxKeyBytes + 1, 'k'), 1), StoreCode::kInvalidParams);
  EXPECT_EQ(test.Start("a", 1, 1, {.replica_num = 0}), StoreCode::kInvalidParams);
  EXPECT_EQ(test.Start("a", 1, 1, {.nof_replica_num = 1}), StoreCode::kInvalidParams);
  EXPECT_EQ(test.Start("a", 1, 1, {.dfs_replica_num = 1}), StoreCode::kDfsServiceUnavailable);
  EXPECT_EQ(test.Start("a", 1, 1, {.soft_pin_ttl_ms = 5}), StoreCode::kInvalidParams);
  EXPECT_EQ(test.Start("a", 1, 1,
                       {.soft_pin_action = SoftPinAction::kEnable, .soft_pin_ttl_ms = 86400001}),
            StoreCode::kInvalidParams);
  EXPECT_EQ(test.Start("a", 1, 1, {.group_ids = {"g", "h"}}), StoreCode::kInvalidParams);
  EXPECT_EQ(test.Start("a", 17 * kPage), StoreCode::kNoAvailableHandle);
  EXPECT_EQ(test.master.counters().in_flight_bytes, 0U);
}

TEST(Master, OneWriterWinsAndTheOthersLearnIt) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Start("a", 100, 1), StoreCode::kOk);
  EXPECT_EQ(test.Start("a", 100, 2), StoreCode::kObjectAlreadyExists);
  EXPECT_EQ(test.End("a", 2), StoreCode::kIllegalClient);
  EXPECT_EQ(test.End("b", 2), StoreCode::kObjectNotFound);
  EXPECT_EQ(test.End("a", 1), StoreCode::kOk);
  EXPECT_EQ(test.End("a", 1), StoreCode::kOk);  // The answer was lost.
  EXPECT_EQ(test.End("a", 1, {.success = false}), StoreCode::kInvalidWrite);
  EXPECT_EQ(test.Start("a", 100, 2), StoreCode::kObjectAlreadyExists);
  EXPECT_EQ(test.End("a", 2), StoreCode::kIllegalClient);
}

TEST(Master, TwoCallsOfOneClientAreTwoWriters) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  for (int call = 0; call < 8; ++call) {  // Chain ids that differ by one.
    EXPECT_EQ(test.Start("a", 100), call == 0 ? StoreCode::kOk : StoreCode::kObjectAlreadyExists);
  }
}

TEST(Master, ARepeatedStartGetsTheSameSpaceAndASecondKeyOfABatchDoesNot) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  BatchPutStartRequest request{.caller = {.client = TestMaster::Client(1)},
                               .chain = {.chain_id = 9, .total = 2},
                               .keys = {"a", "a"},
                               .sizes_bytes = {10, 10}};
  BatchPutStartReply first;
  test.master.Handle(request, test.now(), first);
  EXPECT_EQ(first.results[0].code, StoreCode::kOk);
  EXPECT_EQ(first.results[1].code, StoreCode::kObjectAlreadyExists);
  test.Advance(milliseconds(5));
  request.keys.pop_back();
  request.sizes_bytes.pop_back();
  BatchPutStartReply again;
  test.master.Handle(request, test.now(), again);
  EXPECT_EQ(again.results[0], first.results[0]);
  EXPECT_EQ(again.table, first.table);
  request.chain.position = 1;  // Another window of the call.
  test.master.Handle(request, test.now(), again);
  EXPECT_EQ(again.results[0].code, StoreCode::kObjectAlreadyExists);
}

TEST(Master, ARevokedPutLeavesNothingAndItsBytesRest) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, kPage), StoreCode::kOk);
  ASSERT_EQ(test.Start("a", kPage), StoreCode::kOk);
  ASSERT_EQ(test.End("a", 1, {.success = false}), StoreCode::kOk);
  EXPECT_EQ(test.Get("a"), StoreCode::kObjectNotFound);
  EXPECT_EQ(test.Start("a", kPage), StoreCode::kNoAvailableHandle);
  EXPECT_EQ(test.started.full.retry_after_ms, 1000U);
  test.Advance(seconds(1));
  EXPECT_EQ(test.Start("a", kPage), StoreCode::kOk);
}

TEST(Master, LeasesEndAfterExactlyTheirTime) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", 100), StoreCode::kOk);
  ASSERT_EQ(test.Put("b", 100), StoreCode::kOk);
  EXPECT_EQ(test.Remove("b"), StoreCode::kOk);  // A put grants none.
  EXPECT_TRUE(test.Exists("a"));
  EXPECT_EQ(test.Remove("a"), StoreCode::kObjectHasLease);
  test.Advance(seconds(10) - Duration(1));
  EXPECT_EQ(test.Remove("a"), StoreCode::kObjectHasLease);
  EXPECT_EQ(test.RemoveAll(), 0U);
  test.Advance(Duration(1));
  EXPECT_EQ(test.Remove("a"), StoreCode::kOk);
  EXPECT_EQ(test.Remove("a"), StoreCode::kObjectNotFound);
}

// A reader asks again after a second, so memory of what was removed is not lost for the lease.
TEST(Master, MemoryRestsAfterAForcedRemovalUntilItsReadersHaveStopped) {
  TestMaster test({.read_ttl = milliseconds(700)});
  ASSERT_EQ(test.Mount(1, 2 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", kPage), StoreCode::kOk);
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  const Extent leased = test.GotExtents()[0];
  ASSERT_EQ(test.Remove("a", true), StoreCode::kOk);
  EXPECT_FALSE(test.Exists("a"));
  ASSERT_EQ(test.Put("b", kPage), StoreCode::kOk);
  EXPECT_NE(test.started.table.extents[0].offset_bytes, leased.offset_bytes);
  ASSERT_TRUE(test.Exists("b"));
  EXPECT_EQ(test.Start("c", kPage), StoreCode::kNoAvailableHandle);
  EXPECT_EQ(test.started.full.leased_bytes, 2 * kPage);
  EXPECT_EQ(test.started.full.retry_after_ms, 700U);
  EXPECT_EQ(test.master.CheckInvariants(), "");
  test.Advance(milliseconds(700) - Duration(1));
  EXPECT_EQ(test.Start("c", kPage), StoreCode::kNoAvailableHandle);
  test.Advance(Duration(1));
  ASSERT_EQ(test.Start("c", kPage), StoreCode::kOk);
  EXPECT_EQ(test.started.table.extents[0].offset_bytes, leased.offset_bytes);
}

// Whoever hands a location on has the whole lease for it, whoever else reads meanwhile.
TEST(Master, MemoryLentForTheWholeLeaseRestsSoLong) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", kPage), StoreCode::kOk);
  ASSERT_EQ(test.Get("a", 1, LeaseUse::kWhole), StoreCode::kOk);
  EXPECT_EQ(test.got.lease_ttl_ms, 10000U);
  test.Advance(seconds(4));
  ASSERT_EQ(test.Get("a", 2), StoreCode::kOk);
  EXPECT_EQ(test.got.lease_ttl_ms, 1000U);
  ASSERT_EQ(test.Remove("a", true), StoreCode::kOk);
  test.Advance(seconds(6) - Duration(1));
  EXPECT_EQ(test.Start("b", kPage), StoreCode::kNoAvailableHandle);
  test.Advance(seconds(4) + Duration(1));
  ASSERT_EQ(test.Put("b", kPage), StoreCode::kOk);
  // That was another lease's: one that has ended binds nothing.
  ASSERT_EQ(test.Get("b", 1, LeaseUse::kWhole), StoreCode::kOk);
  test.Advance(seconds(10));
  ASSERT_EQ(test.Get("b"), StoreCode::kOk);
  ASSERT_EQ(test.Remove("b", true), StoreCode::kOk);
  test.Advance(seconds(1));
  EXPECT_EQ(test.Start("c", kPage), StoreCode::kOk);
}

// What is shorter than a read's time is all there is.
TEST(Master, AReadMayNotLastLongerThanTheLease) {
  TestMaster test({.lease_ttl = milliseconds(20)});
  ASSERT_EQ(test.Mount(1, kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", kPage), StoreCode::kOk);
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  EXPECT_EQ(test.got.lease_ttl_ms, 20U);
  ASSERT_EQ(test.Remove("a", true), StoreCode::kOk);
  test.Advance(milliseconds(20));
  EXPECT_EQ(test.Start("b", kPage), StoreCode::kOk);
}

TEST(Master, AnUpsertShowsTheOldBytesUntilItEnds) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", 100), StoreCode::kOk);
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  const auto old = test.GotExtents();
  const std::uint64_t old_version = test.got.objects[0].version;
  ASSERT_EQ(test.Start("a", 100, 2, {}, true), StoreCode::kOk);
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  EXPECT_EQ(test.GotExtents(), old);
  EXPECT_EQ(test.Remove("a", true), StoreCode::kReplicaIsNotReady);
  ASSERT_EQ(test.End("a", 2), StoreCode::kOk);
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  EXPECT_NE(test.GotExtents(), old);
  EXPECT_GT(test.got.objects[0].version, old_version);
  EXPECT_FALSE(test.got.objects[0].from_put);
  EXPECT_EQ(test.master.counters().resting_bytes, 128U);  // Readers of the old bytes may go on.
  // Revoked, it leaves the old ones.
  ASSERT_EQ(test.Start("a", 5000, 3, {}, true), StoreCode::kOk);
  ASSERT_EQ(test.End("a", 3, {.success = false}), StoreCode::kOk);
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  EXPECT_EQ(test.got.objects[0].size_bytes, 100U);
  EXPECT_EQ(test.Upsert("new", 10), StoreCode::kOk);
  ASSERT_EQ(test.Get("new"), StoreCode::kOk);
  EXPECT_FALSE(test.got.objects[0].from_put);
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

TEST(Master, AnUpsertTakesOverAnOpenWriteAtOnceAndAPutAfterItsTime) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Start("a", 100, 1), StoreCode::kOk);
  const std::uint64_t first = test.started.results[0].version;
  ASSERT_EQ(test.Start("a", 100, 2, {}, true), StoreCode::kOk);
  EXPECT_EQ(test.End("a", 1, {.version = first}), StoreCode::kIllegalClient);
  EXPECT_EQ(test.master.counters().puts_discarded, 1U);
  // Its bytes may still arrive: they are nobody's for ten minutes from its start.
  EXPECT_EQ(test.master.counters().resting_bytes, 128U);
  test.Advance(seconds(30) - milliseconds(1));
  EXPECT_EQ(test.Start("a", 100, 3), StoreCode::kObjectAlreadyExists);
  test.Advance(milliseconds(2));
  EXPECT_EQ(test.Start("a", 100, 3), StoreCode::kOk);
  EXPECT_EQ(test.End("a", 2), StoreCode::kIllegalClient);
  EXPECT_EQ(test.End("a", 3), StoreCode::kOk);
  EXPECT_EQ(test.master.CheckInvariants(), "");
  test.Advance(std::chrono::minutes(10));
  test.Tick();
  EXPECT_EQ(test.master.counters().resting_bytes, 0U);
}

TEST(Master, AnOpenWriteIsGivenUpAfterTenMinutes) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Start("a", 100, 1), StoreCode::kOk);
  ASSERT_EQ(test.Start("slow", 100, 1), StoreCode::kOk);
  for (int second = 0; second < 599; ++second) {
    test.Advance(seconds(1));
    EXPECT_EQ(test.Ping(1), ClientStatus::kOk);
    test.Tick();
  }
  EXPECT_EQ(test.End("slow", 1), StoreCode::kOk);  // Late, but nobody minded.
  test.Advance(seconds(2));
  (void)test.Ping(1);
  test.Tick();
  EXPECT_EQ(test.End("a", 1), StoreCode::kObjectNotFound);
  EXPECT_EQ(test.master.counters().puts_released, 1U);
  EXPECT_EQ(test.master.counters().in_flight_bytes, 0U);
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

TEST(Master, AnUpsertPreservesPinsUnlessItSaysOtherwise) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 64 * kPage), StoreCode::kOk);
  const ReplicateConfigView pin{.soft_pin_action = SoftPinAction::kEnable};
  ASSERT_EQ(test.Put("a", 10, 1, pin), StoreCode::kOk);
  ASSERT_EQ(test.Upsert("a", 10), StoreCode::kOk);
  EXPECT_EQ(test.master.counters().soft_pinned_objects, 1U);
  ASSERT_EQ(test.Upsert("a", 10, 1, {.soft_pin_action = SoftPinAction::kDisable}), StoreCode::kOk);
  EXPECT_EQ(test.master.counters().soft_pinned_objects, 0U);
  ASSERT_EQ(test.Upsert("a", 10, 1, {.with_hard_pin = true}), StoreCode::kOk);
  ASSERT_EQ(test.Upsert("a", 10), StoreCode::kOk);
  EXPECT_EQ(test.master.counters().hard_pinned_bytes, 64U);
}

TEST(Master, ObjectsMaySpanHolesAndSegments) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 8 * kPage), StoreCode::kOk);
  for (int number = 0; number < 8; ++number) {
    ASSERT_EQ(test.Put(std::to_string(number), kPage), StoreCode::kOk);
  }
  for (int number = 0; number < 8; number += 2) {
    ASSERT_EQ(test.Remove(std::to_string(number)), StoreCode::kOk);
  }
  ASSERT_EQ(test.Put("large", 4 * kPage - 10), StoreCode::kOk);
  EXPECT_EQ(test.master.counters().evicted_objects, 0U);
  ASSERT_EQ(test.Get("large"), StoreCode::kOk);
  std::uint64_t sum = 0;
  for (const Extent& extent : test.GotExtents()) {
    sum += extent.length_bytes;
  }
  EXPECT_EQ(test.GotExtents().size(), 4U);
  EXPECT_EQ(sum, 4 * kPage - 10);
  ASSERT_EQ(test.Mount(2, 2 * kPage), StoreCode::kOk);
  test.Advance(seconds(10));
  ASSERT_EQ(test.Put("huge", 9 * kPage), StoreCode::kOk);  // Neither segment is large enough.
  ASSERT_EQ(test.Get("huge"), StoreCode::kOk);
  std::set<SegmentNumber> segments;
  for (const Extent& extent : test.GotExtents()) {
    segments.insert(extent.segment);
  }
  EXPECT_EQ(segments.size(), 2U);
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

TEST(Master, ReplicasLieOnDifferentNamesAndFewerAreEnough) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 8 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Mount(2, 8 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", 100, 1, {.replica_num = 2}), StoreCode::kOk);
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  EXPECT_EQ(test.got.objects[0].replicas.count, 2U);
  EXPECT_NE(test.GotExtents(0)[0].segment, test.GotExtents(1)[0].segment);
  ASSERT_EQ(test.Put("b", 100, 1, {.replica_num = 5}), StoreCode::kOk);
  EXPECT_EQ(test.started.results[0].replicas.count, 2U);
  EXPECT_EQ(test.master.counters().put_partial_allocations, 1U);
  // One of them is lost with its segment.
  ASSERT_EQ(test.Unmount(2), StoreCode::kOk);
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  EXPECT_EQ(test.got.objects[0].replicas.count, 1U);
  test.Tick();
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  EXPECT_EQ(test.got.objects[0].replicas.count, 1U);
  EXPECT_EQ(test.master.ReportSegments(test.now()).size(), 1U);
  EXPECT_EQ(test.master.CheckInvariants(), "");
  // And it can still be evicted from the other.
  test.Advance(seconds(10));
  ASSERT_EQ(test.Put("c", 8 * kPage), StoreCode::kOk);
  EXPECT_EQ(test.Get("a"), StoreCode::kObjectNotFound);
}

TEST(Master, RemovesByPatternFoundAnywhere) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 64 * kPage), StoreCode::kOk);
  for (const char* key : {"model/a/1", "model/a/2", "model/b/1", "other"}) {
    ASSERT_EQ(test.Put(key, 10), StoreCode::kOk);
  }
  ASSERT_TRUE(test.Exists("model/a/2"));
  ObjectSweep sweep;
  EXPECT_EQ(Master::Begin(RemoveByRegexRequest{.pattern = "["}, sweep), StoreCode::kInvalidParams);
  EXPECT_EQ(test.RemoveByRegex("a/[0-9]$"), 1U);  // The other one is leased.
  EXPECT_EQ(test.RemoveByRegex("a/[0-9]$", true), 1U);
  EXPECT_EQ(test.RemoveByRegex("^other$"), 1U);
  GetReplicasByRegexReply found;
  ASSERT_EQ(Master::Begin(GetReplicasByRegexRequest{.pattern = "model"}, sweep), StoreCode::kOk);
  while (!test.master.StepGet(sweep, TestMaster::Client(1), test.now(), found)) {
  }
  EXPECT_EQ(found.keys, std::vector<std::string>{"model/b/1"});
  EXPECT_EQ(found.objects.at(0).size_bytes, 10U);
  EXPECT_EQ(test.Remove("model/b/1"), StoreCode::kObjectHasLease);
  EXPECT_EQ(test.RemoveAll(true), 1U);
  EXPECT_EQ(test.master.counters().objects, 0U);
}

TEST(Master, StopsALookupThatNoAnswerCanCarry) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 1 << 20), StoreCode::kOk);
  for (int number = 0; number < 4000; ++number) {  // Of keys alone 64 MB.
    ASSERT_EQ(test.Put(std::string(16000, 'k') + std::to_string(number), 64), StoreCode::kOk);
  }
  ObjectSweep sweep;
  GetReplicasByRegexReply found;
  ASSERT_EQ(Master::Begin(GetReplicasByRegexRequest{.pattern = "^k"}, sweep), StoreCode::kOk);
  while (!test.master.StepGet(sweep, TestMaster::Client(1), test.now(), found)) {
  }
  EXPECT_EQ(found.code, StoreCode::kBufferOverflow);
  EXPECT_TRUE(found.keys.empty() && found.objects.empty() && found.table.extents.empty());
  EXPECT_LT(sweep.reply_bytes, 64ULL << 20);  // An RPC message.
}

TEST(Master, AReadOfOneMemberRenewsTheLeasesOfItsGroup) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 64 * kPage), StoreCode::kOk);
  const ReplicateConfigView group{.group_ids = {"g"}};
  ASSERT_EQ(test.Put("a", 10, 1, group), StoreCode::kOk);
  ASSERT_EQ(test.Put("b", 10, 1, group), StoreCode::kOk);
  ASSERT_EQ(test.Put("c", 10, 1), StoreCode::kOk);
  ASSERT_TRUE(test.Exists("a"));
  EXPECT_EQ(test.Remove("b"), StoreCode::kObjectHasLease);
  EXPECT_EQ(test.Remove("c"), StoreCode::kOk);
  test.Advance(seconds(4));
  ASSERT_TRUE(test.Exists("a"));  // More than half of the lease was left: b is not renewed.
  test.Advance(seconds(6));
  EXPECT_EQ(test.Remove("b"), StoreCode::kOk);
  EXPECT_EQ(test.Start("a", 10, 1, {.group_ids = {"h"}}, true), StoreCode::kInvalidParams);
  ASSERT_EQ(test.Upsert("a", 10), StoreCode::kOk);  // Stays in its group.
  EXPECT_EQ(test.Start("a", 10, 1, {.group_ids = {"h"}}, true), StoreCode::kInvalidParams);
  EXPECT_EQ(test.Start("a", 10, 1, group, true), StoreCode::kOk);
}

TEST(Master, ClearsOnlyWhatTheCallerWrote) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 8 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Mount(2, 8 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("mine", 10, 1, {.replica_num = 2}), StoreCode::kOk);
  ASSERT_EQ(test.Put("theirs", 10, 2), StoreCode::kOk);
  ASSERT_EQ(test.Put("leased", 10, 1), StoreCode::kOk);
  ASSERT_TRUE(test.Exists("leased"));
  BatchReplicaClearReply reply;
  BatchReplicaClearRequest request{.caller = {.client = TestMaster::Client(1)},
                                   .segment_name = "host1:12345",
                                   .keys = {"mine", "theirs", "leased", "none"}};
  test.master.Handle(request, test.now(), reply);
  EXPECT_EQ(reply.cleared, (std::vector<std::uint8_t>{1, 0, 0, 0}));
  ASSERT_EQ(test.Get("mine"), StoreCode::kOk);
  EXPECT_EQ(test.got.objects[0].replicas.count, 1U);
  test.Advance(seconds(10));
  request.segment_name = "";
  test.master.Handle(request, test.now(), reply);
  EXPECT_EQ(reply.cleared, (std::vector<std::uint8_t>{1, 0, 1, 0}));
  EXPECT_EQ(test.Get("mine"), StoreCode::kObjectNotFound);
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

TEST(Master, KeepsItsMemoryForObjectsWithinTheLimit) {
  TestMaster test({.metadata_limit_bytes = 20000});
  ASSERT_EQ(test.Mount(1, 10000 * kPage), StoreCode::kOk);
  for (int number = 0; number < 1000; ++number) {
    ASSERT_EQ(test.Put(std::to_string(number), 64), StoreCode::kOk);
    ASSERT_LE(test.master.counters().metadata_bytes, 20300U);
  }
  EXPECT_GT(test.master.counters().evicted_objects, 800U);
  EXPECT_EQ(test.master.counters().evictions_for_metadata,
            test.master.counters().evictions_attempted);
  EXPECT_TRUE(test.Exists("999"));
}

// Many writers of the same keys: each key ends with one writer's bytes, and all learn how it went.
TEST(Master, WritersThatShareKeysEachGetAClearAnswer) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 256 * kPage), StoreCode::kOk);
  std::map<std::string, std::uint64_t> winner;
  for (std::uint64_t round = 0; round < 50; ++round) {
    for (std::uint64_t writer = 1; writer <= 8; ++writer) {
      const std::string key = "key" + std::to_string((round + writer) % 20);
      const StoreCode code = test.Start(key, 100 * writer, writer);
      if (code == StoreCode::kOk) {
        EXPECT_TRUE(winner.emplace(key, writer).second);
      } else {
        EXPECT_EQ(code, StoreCode::kObjectAlreadyExists);
      }
    }
  }
  EXPECT_EQ(winner.size(), 20U);
  for (const auto& [key, writer] : winner) {
    EXPECT_EQ(test.End(key, writer), StoreCode::kOk);
    ASSERT_EQ(test.Get(key), StoreCode::kOk);
    EXPECT_EQ(test.got.objects[0].size_bytes, 100 * writer);
  }
}

}  // namespace
}  // namespace mooncake::store
