// What becomes of transfers when nothing moves: on one path, on all, for a peer that is stopped or
// cut off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "mooncake-transfer-engine/src/engine/engine_test_rig.h"

namespace mooncake::transfer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(EngineStall, AStallEndsInAnAbortAndTheTaskAsTimeout) {
  EngineRig rig({.manual_clock = true, .stall_limit = 10s});
  rig.switches[0]->stalled = true;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  const Instant begin = rig.clock.Now();
  EXPECT_EQ(rig.Poll(batch, 100ms).state, TransferState::kTimeout);
  EXPECT_GE(rig.clock.Now() - begin, 10s);
  EXPECT_LE(rig.clock.Now() - begin, 12s);
  EXPECT_EQ(rig.engine->TaskStatus(batch, 0)->state, TransferState::kTimeout);
  EXPECT_THAT(rig.engine->TaskError(batch, 0)->message, HasSubstr("no byte moved"));
  EXPECT_EQ(rig.switches[0]->aborts, 1U);
  // Memory is the caller's again, whatever the peer does later.
  rig.switches[0]->stalled = false;
  const std::vector<std::byte> before = rig.local;
  const BatchId next = SubmitOne(rig, rig.Read(5000, 10));
  EXPECT_EQ(rig.Poll(next).state, TransferState::kCompleted);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 5000, rig.local.begin()));
}

TEST(EngineStall, APeerThatIsCutOffIsNotWaitedForAsOneThatIsStopped) {
  EngineRig rig({.manual_clock = true, .stall_limit = 10s});
  rig.switches[0]->stalled = true;
  rig.switches[0]->cut_off = true;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  const Instant begin = rig.clock.Now();
  EXPECT_EQ(rig.Poll(batch, 100ms).state, TransferState::kTimeout);
  EXPECT_GE(rig.clock.Now() - begin, 1s);  // Not asked of who only takes its time.
  EXPECT_LE(rig.clock.Now() - begin, 3s);
  EXPECT_THAT(rig.engine->TaskError(batch, 0)->message, HasSubstr("its host does not answer"));
  EXPECT_EQ(rig.switches[0]->aborts, 1U);
}

TEST(EngineStall, AnotherPathTakesOverWhereOneIsCutOff) {
  EngineRig rig({.transports = {Named("first"), Named("second", 1)},
                 .manual_clock = true,
                 .stall_limit = 10s});
  rig.switches[0]->stalled = true;
  rig.switches[0]->cut_off = true;
  const Instant begin = rig.clock.Now();
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(batch, 100ms).state, TransferState::kCompleted);
  EXPECT_LE(rig.clock.Now() - begin, 3s);
  EXPECT_TRUE(rig.SameBytes(0, 1000));
}

TEST(EngineStall, AStallOnOnePathGoesOnOnAnother) {
  EngineRig rig({.transports = {Named("first"), Named("second", 1)},
                 .manual_clock = true,
                 .stall_limit = 10s});
  rig.switches[0]->stalled = true;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(batch, 100ms).state, TransferState::kCompleted);
  EXPECT_TRUE(rig.SameBytes(0, 1000));
}

TEST(EngineStall, APauseShorterThanTheLimitIsNoFailureHoweverLongTheWholeTakes) {
  EngineRig rig(
      {.transports = {{.capacity = 1, .delay = 0}}, .manual_clock = true, .stall_limit = 10s});
  const BatchId batch = rig.engine->AllocateBatch(20).value();
  const std::vector<TransferRequest> requests(20, rig.Read(0, 100));
  rig.switches[0]->stalled = true;
  ASSERT_TRUE(rig.engine->Submit(batch, requests));
  while (!IsTerminal(rig.engine->BatchStatus(batch)->state)) {
    rig.switches[0]->stalled = true;
    for (int i = 0; i < 9; ++i) {
      EXPECT_FALSE(IsTerminal(rig.engine->BatchStatus(batch)->state));
      rig.clock.Advance(1s);
    }
    rig.switches[0]->stalled = false;
  }
  EXPECT_EQ(rig.engine->BatchStatus(batch)->state, TransferState::kCompleted);
  EXPECT_EQ(rig.switches[0]->aborts, 0U);
}

TEST(EngineStall, ASliceThatMovesSlowlyIsNoStall) {
  EngineRig rig({.manual_clock = true, .stall_limit = 10s});
  rig.switches[0]->stalled = true;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(IsTerminal(rig.engine->BatchStatus(batch)->state));
    rig.clock.Advance(9s);
    ++rig.switches[0]->moved_bytes;
  }
  EXPECT_EQ(rig.switches[0]->aborts, 0U);
  rig.switches[0]->stalled = false;
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kCompleted);
}

TEST(EngineStall, AStallOnOnePathIsSeenWhileAnotherMoves) {
  EngineRig rig({.transports = {{.traits = {.name = "first"}, .capacity = 1},
                                {.traits = {.name = "second", .rank = 1}, .capacity = 1}},
                 .manual_clock = true,
                 .stall_limit = 10s});
  rig.switches[0]->stalled = true;
  rig.switches[1]->stalled = true;
  const BatchId batch = rig.engine->AllocateBatch(2).value();
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 100), rig.Read(100, 100)}));
  ASSERT_EQ(rig.switches[0]->posted, 1U);
  ASSERT_EQ(rig.switches[1]->posted, 1U);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(IsTerminal(rig.engine->BatchStatus(batch)->state));
    rig.clock.Advance(9s);
    ++rig.switches[1]->moved_bytes;
  }
  EXPECT_GT(rig.switches[0]->aborts, 0U);
  EXPECT_EQ(rig.switches[1]->aborts, 0U);
  rig.switches[0]->stalled = false;
  rig.switches[1]->stalled = false;
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kCompleted);
}

// However many windows its slices would fill one after another.
TEST(EngineStall, AStalledPeerFailsAllThatABatchHasForItAfterOneLimit) {
  EngineRig rig({.manual_clock = true, .stall_limit = 10s, .window_slices = 4});
  rig.switches[0]->stalled = true;
  const BatchId batch = rig.engine->AllocateBatch(100).value();
  ASSERT_TRUE(rig.engine->Submit(batch, std::vector<TransferRequest>(100, rig.Read(0, 100))));
  const Instant begin = rig.clock.Now();
  EXPECT_FALSE(rig.engine->FreeBatch(batch)) << "all are open";
  for (bool busy = true; busy;) {
    rig.clock.Advance(100ms);
    static_cast<void>(rig.engine->BatchStatus(batch));
    busy = !rig.engine->TaskError(batch, 99).has_value();
    ASSERT_LE(rig.clock.Now() - begin, 12s);
  }
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(rig.engine->TaskStatus(batch, i)->state, TransferState::kTimeout);
    EXPECT_THAT(rig.engine->TaskError(batch, i)->message, HasSubstr("no byte moved"));
  }
  EXPECT_LE(rig.switches[0]->posted, 8U) << "what was not posted before the stall is not tried";
  EXPECT_TRUE(rig.engine->FreeBatch(batch));
}

// What holds for memory that only one path takes says nothing of the rest.
TEST(EngineStall, AStalledPathGivesUpNothingThatAnotherCanMove) {
  EngineRig rig(
      {.transports = {Named("first"),
                      {.traits = {.name = "second", .rank = 1, .needs_local_registration = true}}},
       .manual_clock = true,
       .stall_limit = 10s,
       .window_slices = 2});
  ASSERT_TRUE(rig.engine->RegisterMemory(
      std::array{MemoryRegistration{.address = rig.local.data() + 4096, .length_bytes = 4096}}));
  std::vector<TransferRequest> requests{rig.Read(0, 100)};
  for (std::size_t i = 0; i < 20; ++i) {
    requests.push_back(rig.Read(4096 + i * 100, 100));
  }
  rig.switches[0]->stalled = true;
  const BatchId batch = rig.engine->AllocateBatch(requests.size()).value();
  ASSERT_TRUE(rig.engine->Submit(batch, requests));
  bool all = false;
  for (int turn = 0; turn < 100'000 && !all; ++turn) {
    rig.clock.Advance(100ms);
    all = true;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      all = IsTerminal(rig.engine->TaskStatus(batch, i)->state) && all;
    }
  }
  EXPECT_EQ(rig.engine->TaskStatus(batch, 0)->state, TransferState::kTimeout);
  for (std::size_t i = 1; i < requests.size(); ++i) {
    EXPECT_EQ(rig.engine->TaskStatus(batch, i)->state, TransferState::kCompleted);
  }
}

// A failed task moves no byte, and a batch that finds the path full has nothing on it that could
// show life: only the time of the submit tells that it has not waited for an hour. Were it not
// asked, the other batch's slice would be aborted.
TEST(EngineStall, IdleTimeBetweenSubmitsIsNoStall) {
  EngineRig rig({.manual_clock = true, .stall_limit = 10s});
  rig.switches[0]->fail_as = ErrorCode::kInternal;
  rig.switches[0]->stalled = true;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 100));
  EXPECT_FALSE(IsTerminal(rig.engine->TaskStatus(batch, 0)->state));
  rig.switches[0]->stalled = false;
  rig.switches[0]->fail_next = 1;
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kFailed);
  rig.clock.Advance(1h);
  rig.switches[0]->stalled = true;
  rig.switches[0]->capacity = 1;
  const BatchId other = SubmitOne(rig, rig.Read(0, 100));
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 100)}));
  EXPECT_FALSE(IsTerminal(rig.engine->TaskStatus(batch, 1)->state));
  EXPECT_EQ(rig.switches[0]->aborts, 0U);
  rig.switches[0]->stalled = false;
  EXPECT_EQ(rig.Poll(other).state, TransferState::kCompleted);
  while (!IsTerminal(rig.engine->TaskStatus(batch, 1)->state)) {
    rig.clock.Advance(1ms);
  }
  EXPECT_EQ(rig.engine->TaskStatus(batch, 1)->state, TransferState::kCompleted);
}

}  // namespace
}  // namespace mooncake::transfer
