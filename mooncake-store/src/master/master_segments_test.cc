// Clients that come and go, and what becomes of their memory.
#include <gtest/gtest.h>

#include <chrono>

#include "mooncake-store/src/master/master_test_util.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kPage = 4096;

TEST(MasterSegments, MountingIsIdempotentAndChecked) {
  TestMaster test;
  EXPECT_EQ(test.Mount(1, kPage), StoreCode::kOk);
  EXPECT_EQ(test.Mount(1, kPage), StoreCode::kOk);
  EXPECT_EQ(test.Mount(1, 2 * kPage), StoreCode::kSegmentAlreadyExists);
  EXPECT_EQ(test.Mount(2, kPage - 1), StoreCode::kInvalidParams);
  MountSegmentReply reply;
  SegmentInfo info = TestMaster::Info(1, kPage);
  test.master.Handle(
      MountSegmentRequest{.caller = {.client = TestMaster::Client(9)}, .segment = info}, test.now(),
      reply);
  EXPECT_EQ(reply.code, StoreCode::kSegmentAlreadyExists);
  info = TestMaster::Info(3, kPage);
  info.base_address = ~std::uint64_t{0} - 10;
  test.master.Handle(
      MountSegmentRequest{.caller = {.client = TestMaster::Client(3)}, .segment = info}, test.now(),
      reply);
  EXPECT_EQ(reply.code, StoreCode::kInvalidParams);
  EXPECT_EQ(test.master.ReportSegments(test.now()).size(), 1U);
}

TEST(MasterSegments, AQueryNamesSegmentsByNumber) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, kPage), StoreCode::kOk);
  ASSERT_EQ(test.Mount(2, kPage), StoreCode::kOk);
  QuerySegmentsReply reply;
  test.master.Handle(QuerySegmentsRequest{.numbers = {1, 7}}, test.now(), reply);
  ASSERT_EQ(reply.segments.size(), 1U);
  EXPECT_EQ(reply.segments[0].info, TestMaster::Info(2, kPage));
  EXPECT_EQ(reply.segments[0].owner, TestMaster::Client(2));
  test.master.Handle(QuerySegmentsRequest{}, test.now(), reply);
  EXPECT_EQ(reply.segments.size(), 2U);
}

TEST(MasterSegments, ASilentClientLosesItsObjectsAfterTheTtl) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 64 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Mount(2, 64 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("on1", 10, 2, {.preferred_segment = "host1:12345"}), StoreCode::kOk);
  ASSERT_EQ(test.Put("on2", 10, 1, {.preferred_segment = "host2:12345"}), StoreCode::kOk);
  test.Advance(seconds(10) - Duration(1));
  EXPECT_EQ(test.Ping(2), ClientStatus::kOk);
  test.Tick();
  EXPECT_TRUE(test.Exists("on1", 2));
  test.Advance(Duration(1));
  test.Tick();
  EXPECT_FALSE(test.Exists("on1", 2));
  EXPECT_TRUE(test.Exists("on2", 2));
  EXPECT_EQ(test.master.counters().clients_expired, 1U);
  EXPECT_EQ(test.master.counters().objects, 1U);
  EXPECT_EQ(test.Ping(1), ClientStatus::kNeedRemount);
  ReMountSegmentsReply reply;
  const ReMountSegmentsRequest request{.caller = {.client = TestMaster::Client(1)},
                                       .segments = {TestMaster::Info(1, 64 * kPage)}};
  for (int twice = 0; twice < 2; ++twice) {
    test.master.Handle(request, test.now(), reply);
    ASSERT_EQ(reply.segments.size(), 1U);
    EXPECT_EQ(reply.segments[0].code, StoreCode::kOk);
  }
  EXPECT_EQ(test.Ping(1), ClientStatus::kOk);
  EXPECT_FALSE(test.Exists("on1", 2));  // What was lost stays lost.
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

TEST(MasterSegments, AClientWithoutSegmentsRemountsNothing) {
  TestMaster test;
  EXPECT_EQ(test.Ping(5), ClientStatus::kNeedRemount);
  ReMountSegmentsReply reply;
  test.master.Handle(ReMountSegmentsRequest{.caller = {.client = TestMaster::Client(5)}},
                     test.now(), reply);
  EXPECT_EQ(test.Ping(5), ClientStatus::kOk);
}

// The dead node's objects go in small steps; what is not yet dropped comes back with it.
TEST(MasterSegments, AClientThatReturnsWhileItIsBeingDroppedKeepsTheRest) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 1000 * kPage), StoreCode::kOk);
  for (int number = 0; number < 200; ++number) {
    ASSERT_EQ(test.Put(std::to_string(number), 10), StoreCode::kOk);
  }
  test.Advance(seconds(10));
  EXPECT_TRUE(test.master.Tick(test.now(), 50));
  EXPECT_EQ(test.master.counters().objects, 150U);
  for (int number = 0; number < 200; ++number) {
    EXPECT_FALSE(test.Exists(std::to_string(number)));  // None can be read meanwhile.
  }
  EXPECT_EQ(test.Start("x", 10), StoreCode::kNoAvailableHandle);
  ASSERT_EQ(test.Mount(1, 1000 * kPage), StoreCode::kOk);
  test.Tick();
  int found = 0;
  for (int number = 0; number < 200; ++number) {
    found += test.Exists(std::to_string(number)) ? 1 : 0;
  }
  EXPECT_EQ(found, 150);
  EXPECT_EQ(test.Put("x", 10), StoreCode::kOk);
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

TEST(MasterSegments, AnOwnerThatLeavesAndComesBackStartsEmpty) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", 10), StoreCode::kOk);
  ASSERT_EQ(test.Get("a"), StoreCode::kOk);
  EXPECT_EQ(test.Unmount(2), StoreCode::kOk);  // Unknown: gone already.
  ASSERT_EQ(test.Unmount(1), StoreCode::kOk);
  EXPECT_FALSE(test.Exists("a"));
  EXPECT_EQ(test.Mount(1, 16 * kPage), StoreCode::kUnavailableInCurrentStatus);
  test.Tick();
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  EXPECT_FALSE(test.Exists("a"));
  // Somebody may still be reading what was leased there.
  EXPECT_EQ(test.Start("b", 10), StoreCode::kNoAvailableHandle);
  test.Advance(seconds(9));
  EXPECT_EQ(test.Ping(1), ClientStatus::kOk);
  test.Advance(seconds(1));
  EXPECT_EQ(test.Start("b", 10), StoreCode::kOk);
}

// An earlier life of the master may have leased what lies there, and this one cannot know.
TEST(MasterSegments, ANewMasterLeavesRemountedMemoryAloneForOneLease) {
  TestMaster test({.lease_ttl = std::chrono::seconds(5)});
  EXPECT_EQ(test.Ping(1), ClientStatus::kNeedRemount);
  test.clock.Advance(std::chrono::seconds(1));
  ReMountSegmentsReply reply;
  test.master.Handle(ReMountSegmentsRequest{.caller = {.client = TestMaster::Client(1)},
                                            .segments = {TestMaster::Info(1, 1 << 20)}},
                     test.now(), reply);
  EXPECT_EQ(reply.segments.at(0).code, StoreCode::kOk);
  test.clock.Advance(std::chrono::milliseconds(3999));
  EXPECT_EQ(test.Put("k", 64), StoreCode::kNoAvailableHandle);
  test.clock.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(test.Put("k", 64), StoreCode::kOk);
  // What is mounted for the first time is nobody's.
  TestMaster fresh;
  EXPECT_EQ(fresh.Mount(1, 1 << 20), StoreCode::kOk);
  EXPECT_EQ(fresh.Put("k", 64), StoreCode::kOk);
}

// The first try may have been carried out by an earlier life, which then died with its answer.
TEST(MasterSegments, ANewMasterLeavesWhatARepeatedMountBringsAloneForOneLease) {
  TestMaster test({.lease_ttl = std::chrono::seconds(5)});
  MountSegmentReply reply;
  test.master.Handle(MountSegmentRequest{.caller = {.client = TestMaster::Client(1)},
                                         .segment = TestMaster::Info(1, 1 << 20),
                                         .repeated = true},
                     test.now(), reply);
  EXPECT_EQ(reply.code, StoreCode::kOk);
  test.clock.Advance(std::chrono::milliseconds(4999));
  EXPECT_EQ(test.Put("k", 64), StoreCode::kNoAvailableHandle);
  test.clock.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(test.Put("k", 64), StoreCode::kOk);
}

TEST(MasterSegments, OnlyTheOwnerUnmounts) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, kPage), StoreCode::kOk);
  UnmountSegmentReply reply;
  test.master.Handle(
      UnmountSegmentRequest{.caller = {.client = TestMaster::Client(2)}, .segment = {1, 7}},
      test.now(), reply);
  EXPECT_EQ(reply.code, StoreCode::kInvalidParams);
}

TEST(MasterSegments, AGracefulUnmountIsReadableButTakesNothingNew) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", 10), StoreCode::kOk);
  ASSERT_EQ(test.Unmount(1, 2000), StoreCode::kOk);
  test.Tick();
  EXPECT_TRUE(test.Exists("a"));
  EXPECT_EQ(test.Start("b", 10), StoreCode::kNoAvailableHandle);
  test.Advance(milliseconds(1999));
  test.Tick();
  EXPECT_TRUE(test.Exists("a"));
  test.Advance(milliseconds(1));
  test.Tick();
  EXPECT_FALSE(test.Exists("a"));
  EXPECT_TRUE(test.master.ReportSegments(test.now()).empty());
}

TEST(MasterSegments, NumbersComeBackWithAnotherIncarnation) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, kPage), StoreCode::kOk);
  const SegmentIdentity first = test.master.ReportSegments(test.now())[0].segment.identity;
  ASSERT_EQ(test.Unmount(1), StoreCode::kOk);
  test.Tick();
  ASSERT_EQ(test.Mount(2, kPage), StoreCode::kOk);
  const SegmentIdentity second = test.master.ReportSegments(test.now())[0].segment.identity;
  EXPECT_EQ(first.number, second.number);
  EXPECT_NE(first.incarnation, second.incarnation);
}

TEST(MasterSegments, AnUnmountDuringAWriteFailsItsEnd) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 16 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Start("a", 10, 2), StoreCode::kOk);
  ASSERT_EQ(test.Unmount(1), StoreCode::kOk);
  test.Tick();
  EXPECT_EQ(test.End("a", 2), StoreCode::kObjectNotFound);
  EXPECT_EQ(test.master.counters().in_flight_bytes, 0U);
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

// ---- Reports of failed reads ----

class HealthTest : public testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t number = 1; number <= 4; ++number) {
      ASSERT_EQ(test_.Mount(number, 16 * kPage), StoreCode::kOk);
      ASSERT_EQ(test_.Put("on" + std::to_string(number), 10, 1,
                          {.preferred_segment = "host" + std::to_string(number) + ":12345"}),
                StoreCode::kOk);
    }
  }
  void PingAll() {
    for (std::uint64_t client = 1; client <= 4; ++client) {
      (void)test_.Ping(client);
    }
  }
  TestMaster test_;
};

TEST_F(HealthTest, AReportHidesTheSegmentFromTheReporterAtOnce) {
  test_.ReportFailed(2, {0});
  EXPECT_FALSE(test_.Exists("on1", 2));
  EXPECT_EQ(test_.Get("on1", 2), StoreCode::kObjectNotFound);
  EXPECT_TRUE(test_.Exists("on1", 3));
  // It can put what it cannot read; the new bytes lie elsewhere, and both see them.
  EXPECT_EQ(test_.Put("on1", 20, 2), StoreCode::kOk);
  ASSERT_EQ(test_.Get("on1", 2), StoreCode::kOk);
  EXPECT_EQ(test_.got.objects[0].size_bytes, 20U);
  EXPECT_FALSE(test_.got.objects[0].from_put);
  EXPECT_EQ(test_.Get("on1", 3), StoreCode::kOk);
  EXPECT_EQ(test_.got.objects[0].size_bytes, 20U);
  EXPECT_EQ(test_.master.CheckInvariants(), "");
}

TEST_F(HealthTest, TwoReportsQuarantineItForAllUntilTheyAreForgotten) {
  test_.ReportFailed(2, {0});
  test_.Advance(seconds(1));
  test_.ReportFailed(3, {0});
  EXPECT_FALSE(test_.Exists("on1", 4));
  EXPECT_TRUE(test_.master.ReportSegments(test_.now())[0].quarantined);
  for (int number = 0; number < 30; ++number) {
    ASSERT_EQ(test_.Put(std::to_string(number), 10, 4), StoreCode::kOk);
    EXPECT_NE(test_.started.table.extents[0].segment, 0U);
  }
  test_.Advance(seconds(4));  // One report is five seconds old.
  PingAll();
  EXPECT_TRUE(test_.Exists("on1", 4));
  EXPECT_FALSE(test_.Exists("on1", 3));
  test_.Advance(seconds(1));
  PingAll();
  EXPECT_TRUE(test_.Exists("on1", 3));
}

TEST_F(HealthTest, OneReportIsEnoughWhenTheOwnerIsSilentToo) {
  test_.Advance(milliseconds(2500));
  for (std::uint64_t client = 2; client <= 4; ++client) {
    (void)test_.Ping(client);
  }
  EXPECT_TRUE(test_.Exists("on1", 4));
  test_.ReportFailed(2, {0});
  EXPECT_FALSE(test_.Exists("on1", 4));
  EXPECT_FALSE(test_.master.ReportSegments(test_.now())[1].quarantined);
  (void)test_.Ping(1);
  EXPECT_TRUE(test_.Exists("on1", 4));
}

TEST_F(HealthTest, OneFaultyClientDoesNotEmptyTheCluster) {
  test_.ReportFailed(2, {0, 1, 2, 3});
  test_.ReportFailed(3, {1});
  for (int number = 1; number <= 4; ++number) {
    EXPECT_TRUE(test_.Exists("on" + std::to_string(number), 4)) << number;
    EXPECT_FALSE(test_.Exists("on" + std::to_string(number), 2)) << number;
  }
}

TEST_F(HealthTest, ReportsOfAnEarlierMountMeanNothing) {
  ReportFailedReadsReply reply;
  test_.master.Handle(ReportFailedReadsRequest{.caller = {.client = TestMaster::Client(2)},
                                               .segments = {{.number = 0, .incarnation = 1}}},
                      test_.now(), reply);
  EXPECT_TRUE(test_.Exists("on1", 2));
}

TEST_F(HealthTest, ASecondReplicaIsOfferedInstead) {
  ASSERT_EQ(test_.Put("both", 10, 1,
                      {.replica_num = 2, .preferred_segments = {"host1:12345", "host2:12345"}}),
            StoreCode::kOk);
  test_.ReportFailed(3, {0});
  ASSERT_EQ(test_.Get("both", 3), StoreCode::kOk);
  ASSERT_EQ(test_.got.objects[0].replicas.count, 1U);
  EXPECT_EQ(test_.GotExtents()[0].segment, 1U);
  ASSERT_EQ(test_.Get("both", 4), StoreCode::kOk);
  EXPECT_EQ(test_.got.objects[0].replicas.count, 2U);
}

}  // namespace
}  // namespace mooncake::store
