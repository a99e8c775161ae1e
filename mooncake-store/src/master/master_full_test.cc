// A master whose store is full: what it evicts, for whom, how often it asks, and when it says no.
#include <gtest/gtest.h>

#include <chrono>

#include "mooncake-store/src/master/eviction/lru.h"
#include "mooncake-store/src/master/master.h"
#include "mooncake-store/src/master/master_test_util.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kPage = 4096;

TEST(FullMaster, PutsIntoAFullStoreEvictTheOldestOnTheSpot) {
  TestMaster test({}, nullptr, std::make_unique<LruPolicy>());
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

TEST(FullMaster, SaysWhatFillsTheStore) {
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

TEST(FullMaster, SoftPinnedObjectsGoLastAndOnlyUntilTheirTime) {
  TestMaster test({}, nullptr, std::make_unique<LruPolicy>());
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

// More ends at one time than is ended under one lock.
TEST(FullMaster, WhatEndsAtOneTimeIsFreeAtThatTimeHoweverMuch) {
  constexpr int kObjects = 3000;
  TestMaster test({.put_release = seconds(20)});
  ASSERT_EQ(test.Mount(1, kObjects * kPage), StoreCode::kOk);
  const auto key = [](int number) { return "key" + std::to_string(number); };

  const ReplicateConfigView pin{.soft_pin_action = SoftPinAction::kEnable, .soft_pin_ttl_ms = 1000};
  for (int number = 0; number < kObjects; ++number) {
    ASSERT_EQ(test.Put(key(number), kPage, 1, pin), StoreCode::kOk);
  }
  test.Advance(seconds(1));
  ASSERT_EQ(test.Put("more", kPage), StoreCode::kOk);
  EXPECT_EQ(test.master.counters().soft_pinned_objects, 0U);

  for (int number = 0; number < kObjects; ++number) {
    (void)test.Get(key(number));  // Leased, but for the one that made room.
  }
  EXPECT_EQ(test.RemoveAll(/*force=*/true), std::uint64_t{kObjects});
  EXPECT_GT(test.master.counters().resting_bytes, 0U);
  test.Advance(seconds(10));
  for (int number = 0; number < kObjects; ++number) {
    ASSERT_EQ(test.Start(key(number), kPage), StoreCode::kOk);
  }
  EXPECT_EQ(test.master.counters().resting_bytes, 0U);

  test.Advance(seconds(20));
  test.Tick();
  EXPECT_EQ(test.master.counters().in_flight_bytes, 0U);
  EXPECT_EQ(test.master.CheckInvariants(), "");
}

TEST(FullMaster, EvictsWhereSpaceIsNeeded) {
  TestMaster test({}, nullptr, std::make_unique<LruPolicy>());
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

TEST(FullMaster, UnequalSegmentsFillEvenlyAndStayFull) {
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

TEST(FullMaster, OneEvictionFreesAheadForItsBatchWithinBounds) {
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
TEST(FullMaster, AFullStoreIsWeighedOnceABatch) {
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
TEST(FullMaster, WhatIsFullForOneKeyOfABatchMayHaveRoomForTheNext) {
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

TEST(FullMaster, AnObjectThatCannotFitEvictsNothing) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 8 * kPage), StoreCode::kOk);
  ASSERT_EQ(test.Put("a", kPage), StoreCode::kOk);
  EXPECT_EQ(test.Start("huge", 9 * kPage), StoreCode::kNoAvailableHandle);
  EXPECT_TRUE(test.Exists("a"));
}

// Heads of chains are worth more than their tails.
TEST(FullMaster, EvictsAChainFromItsEnd) {
  for (const EvictionPolicyKind kind : {EvictionPolicyKind::kHdi, EvictionPolicyKind::kLru}) {
    TestMaster test({}, nullptr, MakePolicy(kind, 1));
    ASSERT_EQ(test.Mount(1, 8 * kPage), StoreCode::kOk);
    const BatchPutStartRequest start{.caller = {.client = TestMaster::Client(1)},
                                     .keys = {"0", "1", "2", "3", "4", "5", "6", "7"},
                                     .sizes_bytes = std::vector<std::uint64_t>(8, kPage)};
    test.master.Handle(start, test.now(), test.started);
    BatchPutEndRequest end{.caller = start.caller, .keys = start.keys};
    end.endings.resize(8);
    BatchPutEndReply ended;
    test.master.Handle(end, test.now(), ended);
    int left = 8;
    for (int number = 0; number < 4; ++number) {
      ASSERT_EQ(test.Put("other" + std::to_string(number), kPage), StoreCode::kOk);
    }
    while (left > 0 && !test.Exists(std::to_string(left - 1))) {
      --left;
    }
    EXPECT_LT(left, 8);
    for (int number = 0; number < left; ++number) {
      EXPECT_TRUE(test.Exists(std::to_string(number))) << number;
    }
  }
}

// What a leased, unfinished or pinned object hangs on may go, when nothing else may.
TEST(FullMaster, AnObjectIsNotKeptForEverByWhatHangsOnIt) {
  for (const EvictionPolicyKind kind : {EvictionPolicyKind::kHdi, EvictionPolicyKind::kLru}) {
    for (const std::string how : {"leased", "unfinished", "pinned"}) {
      SCOPED_TRACE(how);
      TestMaster test({}, nullptr, MakePolicy(kind, 1));
      ASSERT_EQ(test.Mount(1, 2 * kPage), StoreCode::kOk);
      ASSERT_EQ(test.Put("head", kPage), StoreCode::kOk);
      BatchExistReply found;
      test.master.Handle(BatchExistRequest{.caller = {.client = TestMaster::Client(1)},
                                           .chain = {.chain_id = 100, .total = 2},
                                           .keys = {"head", "tail"}},
                         test.now(), found);
      ASSERT_EQ(test.Start("tail", kPage, 1, {.with_hard_pin = how == "pinned"}), StoreCode::kOk);
      if (how != "unfinished") {
        ASSERT_EQ(test.End("tail"), StoreCode::kOk);
        ASSERT_EQ(test.Get("tail", 2), StoreCode::kOk);
      }
      EXPECT_EQ(test.Put("new", kPage), StoreCode::kNoAvailableHandle);  // All is leased or pinned.
      test.Advance(seconds(10));
      ASSERT_EQ(test.Get("tail", 2) == StoreCode::kOk, how != "unfinished");
      EXPECT_EQ(test.Put("new", kPage), StoreCode::kOk);
      EXPECT_EQ(test.Get("head"), StoreCode::kObjectNotFound);
      EXPECT_EQ(test.master.CheckInvariants(), "");
    }
  }
}

TEST(FullMaster, AGroupGoesWholeAndStaysWholeWhileOneOfItIsLeasedOrUnfinished) {
  for (const EvictionPolicyKind kind : {EvictionPolicyKind::kHdi, EvictionPolicyKind::kLru}) {
    TestMaster test({}, nullptr, MakePolicy(kind, 1));
    ASSERT_EQ(test.Mount(1, 3 * kPage), StoreCode::kOk);
    const ReplicateConfigView together{.group_ids = {"group"}};
    const ReplicateConfigView pinned{.with_hard_pin = true, .group_ids = {"group"}};
    ASSERT_EQ(test.Put("a", kPage, 1, together), StoreCode::kOk);
    ASSERT_EQ(test.Put("pinned", kPage, 1, pinned), StoreCode::kOk);
    ASSERT_EQ(test.Start("b", kPage, 1, together), StoreCode::kOk);
    EXPECT_EQ(test.Put("x", kPage), StoreCode::kNoAvailableHandle);  // b is being written.
    ASSERT_EQ(test.End("b"), StoreCode::kOk);
    ASSERT_EQ(test.Get("b"), StoreCode::kOk);
    test.Advance(seconds(1));
    EXPECT_EQ(test.Put("x", kPage), StoreCode::kNoAvailableHandle);  // b is leased.
    test.Advance(seconds(10));
    EXPECT_EQ(test.Put("x", kPage), StoreCode::kOk);
    EXPECT_EQ(test.master.counters().evicted_objects, 2U);
    EXPECT_FALSE(test.Exists("a"));
    EXPECT_FALSE(test.Exists("b"));
    EXPECT_TRUE(test.Exists("pinned"));
    EXPECT_EQ(test.master.CheckInvariants(), "");
  }
}

TEST(FullMaster, ASoftPinnedMemberStaysWhenItsGroupGoes) {
  TestMaster test;
  ASSERT_EQ(test.Mount(1, 3 * kPage), StoreCode::kOk);
  ReplicateConfigView config{.group_ids = {"group"}};
  ASSERT_EQ(test.Put("a", kPage, 1, config), StoreCode::kOk);
  ASSERT_EQ(test.Put("b", kPage, 1, config), StoreCode::kOk);
  config.soft_pin_action = SoftPinAction::kEnable;
  ASSERT_EQ(test.Put("pinned", kPage, 1, config), StoreCode::kOk);
  EXPECT_EQ(test.Put("x", 2 * kPage), StoreCode::kOk);
  EXPECT_EQ(test.master.counters().evicted_objects, 2U);
  EXPECT_EQ(test.Get("pinned"), StoreCode::kOk);
}

// What a new object hangs on goes before the put is refused.
TEST(FullMaster, TheParentOfAPutGoesWhenNothingElseMay) {
  for (const EvictionPolicyKind kind : {EvictionPolicyKind::kHdi, EvictionPolicyKind::kLru}) {
    TestMaster test({}, nullptr, MakePolicy(kind, 1));
    ASSERT_EQ(test.Mount(1, kPage), StoreCode::kOk);
    ASSERT_EQ(test.Put("head", kPage), StoreCode::kOk);
    BatchExistReply found;
    test.master.Handle(BatchExistRequest{.caller = {.client = TestMaster::Client(1)},
                                         .chain = {.chain_id = 100, .total = 2},
                                         .keys = {"head", "tail"}},
                       test.now(), found);
    EXPECT_EQ(test.Put("tail", kPage), StoreCode::kNoAvailableHandle);
    test.Advance(seconds(10));
    EXPECT_EQ(test.Put("tail", kPage), StoreCode::kOk);
    EXPECT_EQ(test.master.CheckInvariants(), "");
  }
}

}  // namespace
}  // namespace mooncake::store
