// What threads may expect that use one batch or one segment at the same time.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/engine/engine_test_rig.h"

namespace mooncake::transfer {
namespace {

using namespace std::chrono_literals;

// Memory that the peer has only registered since it was asked: submitting this asks once more.
TransferRequest ReadOfNewMemory(const EngineRig& rig) {
  TransferRequest request = rig.Read(0, 100);
  request.remote_address += rig.remote.size();
  return request;
}

TEST(EngineRace, ABatchThatIsFreedWhileASubmitAsksThePeerIsStale) {
  EngineRig rig;
  const BatchId batch = rig.engine->AllocateBatch(4).value();
  rig.directory->SetSilent(EngineRig::kPeer);
  Result<void> submitted;
  std::jthread submitter(
      [&] { submitted = rig.engine->Submit(batch, std::array{ReadOfNewMemory(rig)}); });
  EXPECT_TRUE(WaitUntil([&] { return rig.directory->waiting() == 1; }));
  EXPECT_TRUE(rig.engine->FreeBatch(batch));
  rig.directory->SetSilent("");
  submitter.join();
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, ErrorCode::kNotFound);
}

TEST(EngineRace, ABatchThatIsFreedWhileASubmitMakesFirstContactIsStale) {
  EngineRig rig;
  ASSERT_TRUE(rig.engine->CloseSegment(rig.segment));
  const BatchId batch = rig.engine->AllocateBatch(4).value();
  rig.directory->SetSilent(EngineRig::kPeer);
  Result<void> submitted;
  std::jthread submitter(
      [&] { submitted = rig.engine->Submit(batch, std::array{rig.Read(0, 100)}); });
  EXPECT_TRUE(WaitUntil([&] { return rig.directory->waiting() == 1; }));
  EXPECT_TRUE(rig.engine->FreeBatch(batch));
  rig.directory->SetSilent("");
  submitter.join();
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, ErrorCode::kNotFound);
}

TEST(EngineRace, ABatchThatIsCancelledWhileASubmitAsksThePeerTakesNothingMore) {
  EngineRig rig;
  rig.switches[0]->stalled = true;
  const BatchId batch = rig.engine->AllocateBatch(4).value();
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 100)}));
  const TransferRequest request = ReadOfNewMemory(rig);
  rig.directory->SetSilent(EngineRig::kPeer);
  Result<void> submitted;
  std::jthread submitter([&] { submitted = rig.engine->Submit(batch, std::array{request}); });
  EXPECT_TRUE(WaitUntil([&] { return rig.directory->waiting() == 1; }));
  EXPECT_TRUE(rig.engine->Cancel(batch));
  SegmentDescriptor peer = *rig.engine->Descriptor(rig.segment).value();
  peer.buffers[0].length_bytes += 100;
  EXPECT_TRUE(rig.directory->Publish(peer));
  rig.directory->SetSilent("");
  submitter.join();
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, ErrorCode::kCancelled);
}

// Goal: what a peer offered before a call is seen by it, whatever was asked before. Method: all but
// the first come while its question is under way, which is only one; then there has to be another.
TEST(EngineRace, WhoComesWhileAPeerIsAskedGetsALaterAnswer) {
  EngineRig rig;
  const int before = rig.directory->fetches();
  rig.directory->SetSilent(EngineRig::kPeer);
  std::jthread first([&] { EXPECT_TRUE(rig.engine->RefreshSegment(rig.segment)); });
  EXPECT_TRUE(WaitUntil([&] { return rig.directory->waiting() == 1; }));
  std::atomic<int> coming = 0;
  std::vector<std::jthread> others;
  others.reserve(4);
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] {
      ++coming;
      EXPECT_TRUE(rig.engine->RefreshSegment(rig.segment));
    });
  }
  EXPECT_TRUE(WaitUntil([&] { return coming == 4; }));
  rig.directory->SetSilent("");
  first.join();
  others.clear();
  EXPECT_GE(rig.directory->fetches() - before, 2);
}

// A stall is counted once, whoever else looks after the batch while it is being ended.
TEST(EngineRace, AStallThatIsBeingEndedStaysOne) {
  EngineRig rig({.manual_clock = true, .stall_limit = 10s});
  rig.switches[0]->stalled = true;
  rig.switches[0]->hold_aborts = true;
  const BatchId batch = rig.engine->AllocateBatch(1).value();
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 100)}));
  EXPECT_FALSE(IsTerminal(rig.engine->BatchStatus(batch)->state));
  rig.clock.Advance(10s);
  std::jthread ending([&] { static_cast<void>(rig.engine->BatchStatus(batch)); });
  EXPECT_TRUE(WaitUntil([&] { return rig.switches[0]->aborts == 1; }));
  EXPECT_FALSE(IsTerminal(rig.engine->BatchStatus(batch)->state));
  rig.switches[0]->hold_aborts = false;
  rig.switches[0]->hold_aborts.notify_all();
  ending.join();
  EXPECT_EQ(rig.engine->TaskStatus(batch, 0)->state, TransferState::kTimeout);
  EXPECT_EQ(rig.switches[0]->posted, 1U) << "not tried for another limit";
}

TEST(EngineRace, AnEngineHasStoppedForWhoeverStopsIt) {
  EngineRig rig;
  rig.directory->SetSilent("self:1");
  std::jthread first([&] { rig.engine->Stop(); });
  EXPECT_TRUE(WaitUntil([&] { return rig.directory->waiting() == 1; }));
  std::atomic<bool> returned = false;
  std::jthread second([&] {
    rig.engine->Stop();
    EXPECT_FALSE(rig.directory->Probe("self:1")) << "still published";
    returned = true;
  });
  for (int turn = 0; turn < 1000 && !returned; ++turn) {
    std::this_thread::yield();  // Time enough to return too early.
  }
  rig.directory->SetSilent("");
}

TEST(EngineRace, AnEngineMayBeStoppedAgainWithinItsStop) {
  EngineRig rig;
  rig.switches[0]->stalled = true;
  const BatchId batch = rig.engine->AllocateBatch(1).value();
  bool stopped = false;
  ASSERT_TRUE(rig.engine->OnCompletion(batch, [&] {
    rig.engine->Stop();
    stopped = true;
  }));
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 100)}));
  rig.engine->Stop();
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace mooncake::transfer
