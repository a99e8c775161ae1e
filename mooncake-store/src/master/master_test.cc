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
  EXPECT_EQ(test.got.lease_ttl_ms, 10000U);
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

TEST(Master, MemoryUnderALeaseIsNotReusedAfterAForcedRemoval) {
  TestMaster test;
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
  EXPECT_EQ(test.started.full.retry_after_ms, 10000U);
  EXPECT_EQ(test.master.CheckInvariants(), "");
  test.Advance(seconds(10));
  ASSERT_EQ(test.Start("c", kPage), StoreCode::kOk);
  EXPECT_EQ(test.started.table.extents[0].offset_bytes, leased.offset_bytes);
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

TEST(Master, PutsIntoAFullStoreEvictTheOldestOnTheSpot) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 8 * kPage), StoreCode::kOk);
  for (int number = 0; number < 100; ++number) {
    ASSERT_EQ(test.Put(std::to_string(number), kPage), StoreCode::kOk) << number;
    test.Advance(milliseconds(1));
  }
  EXPECT_EQ(test.master.counters().evicted_objects, 92U);
  for (int number = 0; number < 92; ++number) {
    EXPECT_EQ(test.Get(std::to_string(number)), StoreCode::kObjectNotFound);
  }
  for (int number = 92; number < 100; ++number) {
    EXPECT_TRUE(test.Exists(std::to_string(number)));
  }
  EXPECT_EQ(test.Start("more", kPage), StoreCode::kNoAvailableHandle);  // All are leased now.
  EXPECT_EQ(test.started.full.leased_bytes, 8 * kPage);
  test.Advance(seconds(10));
  EXPECT_EQ(test.Put("more", kPage), StoreCode::kOk);
  EXPECT_EQ(test.Get("92"), StoreCode::kObjectNotFound);
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

TEST(Master, SaysWhatFillsTheStore) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 3 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("pinned", kPage, 1, {.with_hard_pin = true}), StoreCode::kOk);
  ASSERT_EQ(test.Put("leased", kPage), StoreCode::kOk);
  ASSERT_TRUE(test.Exists("leased"));
  ASSERT_EQ(test.Start("open", kPage), StoreCode::kOk);
  ASSERT_EQ(test.Start("more", kPage), StoreCode::kNoAvailableHandle);
  EXPECT_EQ(test.started.full, (FullHint{.retry_after_ms = 10000,
                                         .leased_bytes = kPage,
                                         .pinned_bytes = kPage,
                                         .in_flight_bytes = kPage}));
  EXPECT_EQ(test.Remove("pinned"), StoreCode::kOk);  // Pins do not hold against that.
  EXPECT_EQ(test.Start("more", kPage), StoreCode::kOk);
}

TEST(Master, SoftPinnedObjectsGoLastAndOnlyUntilTheirTime) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 3 * kPage), StoreCode::kOk);
  const ReplicateConfigView pin{.soft_pin_action = SoftPinAction::kEnable, .soft_pin_ttl_ms = 1000};
  ASSERT_EQ(test.Put("pinned", kPage, 1, pin), StoreCode::kOk);
  EXPECT_EQ(test.master.counters().soft_pinned_objects, 1U);
  ASSERT_EQ(test.Put("a", kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("b", kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("c", kPage), StoreCode::kOk);  // Evicts a, not the older one.
  EXPECT_EQ(test.Get("a"), StoreCode::kObjectNotFound);
  test.Advance(milliseconds(999));
  ASSERT_EQ(test.Put("d", kPage), StoreCode::kOk);
  EXPECT_EQ(test.Get("b"), StoreCode::kObjectNotFound);
  test.Advance(milliseconds(1));
  ASSERT_TRUE(test.Exists("c"));
  ASSERT_TRUE(test.Exists("d"));
  ASSERT_EQ(test.Put("e", kPage), StoreCode::kOk);
  EXPECT_EQ(test.Get("pinned"), StoreCode::kObjectNotFound);
  EXPECT_EQ(test.master.counters().soft_pinned_objects, 0U);

  // With nothing else left they go as well, unless that is forbidden.
  for (const bool allowed : {true, false}) {
    TestMaster other({.allow_evict_soft_pinned = allowed});
    ASSERT_EQ(other.Mount(1, kPage), StoreCode::kOk);
    ASSERT_EQ(other.Put("pinned", kPage, 1, pin), StoreCode::kOk);
    EXPECT_EQ(other.Put("a", kPage), allowed ? StoreCode::kOk : StoreCode::kNoAvailableHandle);
  }
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

TEST(Master, EvictsWhereSpaceIsNeeded) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 4 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Mount(2, 4 * kPage), StoreCode::kOk);
  const ReplicateConfigView first{.preferred_segment = "host1:12345"};
  const ReplicateConfigView second{.preferred_segment = "host2:12345"};
  for (int number = 0; number < 4; ++number) {
    ASSERT_EQ(test.Put("1." + std::to_string(number), kPage, 1, first), StoreCode::kOk);
    ASSERT_EQ(test.Put("2." + std::to_string(number), kPage, 1, second), StoreCode::kOk);
  }
  ASSERT_EQ(test.Put("2.4", kPage, 1, second), StoreCode::kOk);
  EXPECT_EQ(test.started.table.extents[0].segment, 1U);
  EXPECT_EQ(test.Get("2.0"), StoreCode::kObjectNotFound);
  EXPECT_EQ(test.Get("1.0"), StoreCode::kOk);
  EXPECT_EQ(test.master.counters().evicted_objects, 1U);
  // A wish that cannot be granted is no demand.
  EXPECT_EQ(test.Put("x", 10, 1, {.preferred_segment = "nowhere:1"}), StoreCode::kOk);
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

TEST(Master, UnequalSegmentsFillEvenlyAndStayFull) {
  for (const AllocationStrategy strategy :
       {AllocationStrategy::kRandom, AllocationStrategy::kFreeRatioFirst}) {
    TestMaster test({.allocation_strategy = strategy});
    ASSERT_EQ(test.Mount(1, 32 * kPage), StoreCode::kOk);
    ASSERT_EQ(test.Mount(2, 32 * kPage), StoreCode::kOk);
    ASSERT_EQ(test.Mount(3, 128 * kPage), StoreCode::kOk);
    for (int number = 0; number < 4 * 192; ++number) {
      ASSERT_EQ(test.Put(std::to_string(number), kPage), StoreCode::kOk);
      if (number > 3 * 192) {
        for (const SegmentReport& report : test.master.ReportSegments(test.now())) {
          EXPECT_GE(report.used_bytes * 100, report.capacity_bytes * 97);
        }
      }
    }
  }
}

TEST(Master, OneEvictionFreesAheadForItsBatchWithinBounds) {
  for (const double ratio : {0.0, 0.5}) {
    TestMaster test({.eviction_ratio = ratio});
    ASSERT_EQ(test.Mount(1, 64 * kPage), StoreCode::kOk);
    for (int number = 0; number < 64; ++number) {
      ASSERT_EQ(test.Put(std::to_string(number), kPage), StoreCode::kOk);
    }
    BatchPutStartRequest request;
    std::vector<std::string> keys;
    keys.reserve(16);
    for (int number = 0; number < 16; ++number) {
      keys.push_back("new" + std::to_string(number));
    }
    request.keys.assign(keys.begin(), keys.end());
    request.sizes_bytes.assign(16, kPage);
    BatchPutStartReply reply;
    test.master.Handle(request, test.now(), reply);
    for (const PutStartResult& result : reply.results) {
      EXPECT_EQ(result.code, StoreCode::kOk);
    }
    EXPECT_EQ(test.master.counters().evicted_objects, 16U);  // No more than was needed.
    EXPECT_EQ(test.master.counters().evictions_attempted, ratio == 0 ? 16U : 1U);
  }
}

// Lru, and how often it was asked for victims.
class CountingLru final : public EvictionPolicy {
 public:
  explicit CountingLru(int& picks) : picks_(picks) {}
  bool NeedsParents() const override { return lru_.NeedsParents(); }
  void OnChain(const ChainEvent& event) override { lru_.OnChain(event); }
  void OnPut(const PutEvent& event) override { lru_.OnPut(event); }
  void OnReady(Slot slot) override { lru_.OnReady(slot); }
  void OnPin(Slot slot, PinClass pin) override { lru_.OnPin(slot, pin); }
  void OnGone(Slot slot) override { lru_.OnGone(slot); }
  void Pick(const PickRequest& request, SlotGuard& guard, std::vector<Slot>& out) override {
    ++picks_;
    lru_.Pick(request, guard, out);
  }

 private:
  LruPolicy lru_;
  int& picks_;
};

// Nothing may go: whether that is so is asked once for hard and once for soft, not for each key.
TEST(Master, AFullStoreIsWeighedOnceABatch) {
  int picks = 0;
  TestMaster test({}, nullptr, std::make_unique<CountingLru>(picks));
  ASSERT_EQ(test.Mount(1, 8 * kPage), StoreCode::kOk);
  for (int number = 0; number < 7; ++number) {
    ASSERT_EQ(test.Put(std::to_string(number), kPage), StoreCode::kOk);
    ASSERT_TRUE(test.Exists(std::to_string(number)));
  }
  std::vector<std::string> keys;
  for (std::size_t number = 0; number < kMaxKeysPerBatch; ++number) {
    keys.push_back("new" + std::to_string(number));
  }
  BatchPutStartRequest request{.keys = {keys.begin(), keys.end()},
                               .sizes_bytes = std::vector<std::uint64_t>(keys.size(), 2 * kPage)};
  request.sizes_bytes[10] = kPage + 1;
  request.sizes_bytes[20] = kPage;  // There is room for this one all the same.
  BatchPutStartReply reply;
  test.master.Handle(request, test.now(), reply);
  EXPECT_EQ(picks, 2);
  for (std::size_t index = 0; index < keys.size(); ++index) {
    ASSERT_EQ(reply.results[index].code,
              index == 20 ? StoreCode::kOk : StoreCode::kNoAvailableHandle)
        << index;
  }
  EXPECT_EQ(
      reply.full,
      (FullHint{.retry_after_ms = 10000, .leased_bytes = 7 * kPage, .in_flight_bytes = kPage}));
  EXPECT_EQ(test.master.counters().put_alloc_failures, keys.size() - 1);
  // Another batch weighs it anew.
  test.Advance(seconds(10));
  EXPECT_EQ(test.Put("later", 4 * kPage), StoreCode::kOk);
}

// That nothing may go on one segment says nothing of another.
TEST(Master, WhatIsFullForOneKeyOfABatchMayHaveRoomForTheNext) {
  int picks = 0;
  TestMaster test({}, nullptr, std::make_unique<CountingLru>(picks));
  ASSERT_EQ(test.Mount(1, 2 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Mount(2, 4 * kPage), StoreCode::kOk);
  const ReplicateConfigView first{.preferred_segment = "host1:12345"};
  ASSERT_EQ(test.Put("leased", 2 * kPage, 1, first), StoreCode::kOk);
  ASSERT_TRUE(test.Exists("leased"));
  ASSERT_EQ(test.Put("old", 4 * kPage), StoreCode::kOk);
  const BatchPutStartRequest request{.config = first,
                                     .keys = {"a", "b", "c", "d", "e"},
                                     .sizes_bytes = std::vector<std::uint64_t>(5, kPage)};
  test.master.Handle(request, test.now(), test.started);
  for (std::size_t index = 0; index < 5; ++index) {
    EXPECT_EQ(test.started.results[index].code,
              index < 4 ? StoreCode::kOk : StoreCode::kNoAvailableHandle);
  }
  EXPECT_EQ(test.Get("old"), StoreCode::kObjectNotFound);
  EXPECT_EQ(test.Get("leased"), StoreCode::kOk);
}

TEST(Master, AnObjectThatCannotFitEvictsNothing) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 8 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", kPage), StoreCode::kOk);
  EXPECT_EQ(test.Start("huge", 9 * kPage), StoreCode::kNoAvailableHandle);
  EXPECT_TRUE(test.Exists("a"));
}

// Heads of chains are worth more than their tails.
TEST(Master, EvictsAChainFromItsEnd) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 8 * kPage), StoreCode::kOk);
  const BatchPutStartRequest start{.caller = {.client = TestMaster::Client(1)},
                                   .keys = {"0", "1", "2", "3", "4", "5", "6", "7"},
                                   .sizes_bytes = std::vector<std::uint64_t>(8, kPage)};
  test.master.Handle(start, test.now(), test.started);
  BatchPutEndRequest end{.caller = start.caller, .keys = start.keys};
  end.endings.resize(8);
  BatchPutEndReply ended;
  test.master.Handle(end, test.now(), ended);
  for (int number = 0; number < 4; ++number) {
    ASSERT_EQ(test.Put("other" + std::to_string(number), kPage), StoreCode::kOk);
  }
  for (int number = 0; number < 8; ++number) {
    EXPECT_EQ(test.Exists(std::to_string(number)), number < 4) << number;
  }
}

}  // namespace
}  // namespace mooncake::store
