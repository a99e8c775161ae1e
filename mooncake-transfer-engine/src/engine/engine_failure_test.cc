// What becomes of transfers when paths fail, fill up, or the peer restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/engine/engine_test_rig.h"

namespace mooncake::transfer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(EngineFailure, AFailedSliceIsSentAgainOnAnotherPath) {
  EngineRig rig({.transports = {Named("first"), Named("second", 1)}, .manual_clock = true});
  rig.switches[0]->down = true;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kCompleted);
  EXPECT_TRUE(rig.SameBytes(0, 1000));
  EXPECT_EQ(rig.switches[0]->posted, 1U);
  EXPECT_EQ(rig.switches[1]->posted, 1U);
}

TEST(EngineFailure, AFailedSliceIsSentAgainOnTheOnlyPath) {
  EngineRig rig({.manual_clock = true});
  rig.switches[0]->fail_next = 3;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kCompleted);
  EXPECT_EQ(rig.switches[0]->posted, 4U);
}

TEST(EngineFailure, ATaskFailsWithTheReasonOfEveryAttempt) {
  EngineRig rig({.transports = {Named("first"), Named("second", 1)}, .manual_clock = true});
  rig.switches[0]->down = true;
  rig.switches[1]->down = true;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kFailed);
  const Error why = rig.engine->TaskError(batch, 0).value();
  EXPECT_EQ(why.code, ErrorCode::kUnavailable);
  EXPECT_THAT(why.message, HasSubstr("via first"));
  EXPECT_THAT(why.message, HasSubstr("via second"));
  EXPECT_THAT(why.message, HasSubstr("peer:1"));
  EXPECT_EQ(rig.switches[0]->posted + rig.switches[1]->posted, 6U) << "the budget of attempts";
  EXPECT_TRUE(rig.engine->FreeBatch(batch));
}

TEST(EngineFailure, OneFailedBatchHarmsNoOther) {
  EngineRig rig({.manual_clock = true});
  rig.switches[0]->down = true;
  const BatchId bad = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(bad).state, TransferState::kFailed);
  rig.switches[0]->down = false;
  const BatchId good = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(good).state, TransferState::kCompleted) << "a pause is no reason to refuse";
  EXPECT_EQ(rig.engine->BatchStatus(bad)->state, TransferState::kFailed);
}

TEST(EngineFailure, AFailureInTheMiddleKeepsWhatWasMovedAndSendsTheRest) {
  EngineRig rig({.transports = {{.traits = {.name = "fake", .max_slice_bytes = 1000}, .delay = 0}},
                 .manual_clock = true});
  const BatchId batch = rig.engine->AllocateBatch(1).value();
  rig.switches[0]->fail_next = 20;
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 100'000)}));
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kCompleted);
  EXPECT_EQ(rig.engine->BatchStatus(batch)->transferred_bytes, 100'000U);
  EXPECT_TRUE(rig.SameBytes(0, 100'000));
  EXPECT_EQ(rig.switches[0]->posted, 120U);
}

TEST(EngineFailure, ATaskOnlyEndsWhenNoSliceOfItIsInFlight) {
  EngineRig rig({.transports = {{.traits = {.name = "fake", .max_slice_bytes = 100}, .delay = 9}},
                 .manual_clock = true});
  rig.switches[0]->fail_as = ErrorCode::kInternal;  // Not worth another attempt.
  rig.switches[0]->fail_next = 1;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 5000));
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kFailed);
  const std::vector<std::byte> before = rig.local;
  std::ranges::fill(rig.remote, std::byte{1});
  ASSERT_TRUE(rig.engine->FreeBatch(batch));
  rig.engine->Stop();
  EXPECT_EQ(rig.local, before);
}

TEST(EngineFailure, APeerThatIsGoneFailsAllThatABatchHasForItAfterOneBudget) {
  EngineRig rig({.manual_clock = true, .window_slices = 4});
  rig.switches[0]->down = true;
  const BatchId batch = rig.engine->AllocateBatch(1000).value();
  ASSERT_TRUE(rig.engine->Submit(batch, std::vector<TransferRequest>(1000, rig.Read(0, 100))));
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kFailed);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(rig.engine->TaskStatus(batch, i)->state, TransferState::kFailed);
    EXPECT_THAT(rig.engine->TaskError(batch, i)->message, HasSubstr("failed on purpose"));
  }
  EXPECT_LE(rig.switches[0]->posted, 4U * 6U) << "a window of slices, and their budget of attempts";
  // It is the slices of then that were given up, not the peer.
  rig.switches[0]->down = false;
  const BatchId next = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(next).state, TransferState::kCompleted);
}

TEST(EngineFailure, APeerThatIsGoneHarmsNoOtherOfTheSameBatch) {
  EngineRig rig({.manual_clock = true, .window_slices = 8});
  SegmentDescriptor gone = *rig.engine->Descriptor(rig.segment).value();
  gone.name = "gone:1";
  gone.extension->incarnation = 7;
  ASSERT_TRUE(rig.directory->Publish(gone));
  const SegmentId dead = rig.engine->OpenSegment(gone.name).value();
  std::vector<TransferRequest> requests;
  for (std::size_t i = 0; i < 200; ++i) {
    requests.push_back(rig.Read(i * 100, 100));
    requests.back().segment = i % 2 == 0 ? dead : rig.segment;
  }
  const BatchId batch = rig.engine->AllocateBatch(200).value();
  ASSERT_TRUE(rig.engine->Submit(batch, requests));
  bool all = false;
  for (int turn = 0; turn < 100'000 && !all; ++turn) {
    rig.clock.Advance(1ms);
    all = true;
    for (std::size_t i = 0; i < 200; ++i) {
      all = IsTerminal(rig.engine->TaskStatus(batch, i)->state) && all;
    }
  }
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(rig.engine->TaskStatus(batch, i)->state,
              i % 2 == 0 ? TransferState::kFailed : TransferState::kCompleted);
    EXPECT_TRUE(i % 2 == 0 || rig.SameBytes(i * 100, 100));
  }
}

TEST(EngineFailure, ARestartedPeerIsFoundAgainDuringTheTransfer) {
  EngineRig rig({.manual_clock = true});
  ASSERT_TRUE(rig.engine->Transfer(std::array{rig.Read(0, 10)}));
  rig.PublishPeer(2);
  const int fetches = rig.directory->fetches();
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kCompleted);
  EXPECT_TRUE(rig.SameBytes(0, 1000));
  EXPECT_GT(rig.directory->fetches(), fetches);
}

TEST(EngineFailure, ARestartedPeerWithOtherAddressesIsToldApart) {
  EngineRig rig({.manual_clock = true});
  ASSERT_TRUE(rig.engine->Transfer(std::array{rig.Read(0, 10)}));
  std::vector<std::byte> old_memory = std::exchange(rig.remote, std::vector<std::byte>(4096));
  rig.PublishPeer(2);
  TransferRequest stale = rig.Read(0, 100);
  stale.remote_address = reinterpret_cast<std::uint64_t>(old_memory.data());
  const BatchId batch = SubmitOne(rig, stale);
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kFailed);
  EXPECT_THAT(rig.engine->TaskError(batch, 0)->message, HasSubstr("no longer offers"));
  EXPECT_TRUE(rig.engine->Transfer(std::array{rig.Read(0, 100)})) << "the new addresses work";
}

TEST(EngineFailure, ADirectoryThatIsDownKeepsTheOldDescriptorInUse) {
  EngineRig rig({.manual_clock = true});
  rig.directory->SetDown(true);
  rig.switches[0]->fail_next = 2;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kCompleted);
}

TEST(EngineFailure, WhatThePeerRefusesTwiceIsNotAskedAgain) {
  EngineRig rig({.manual_clock = true});
  rig.switches[0]->fail_as = ErrorCode::kRejected;
  rig.switches[0]->down = true;
  const BatchId batch = SubmitOne(rig, rig.Read(0, 1000));
  EXPECT_EQ(rig.Poll(batch).state, TransferState::kFailed);
  EXPECT_EQ(rig.switches[0]->posted, 2U);
}

TEST(EngineFailure, CancelEndsWhatIsInFlightAndWhatWaits) {
  EngineRig rig({.transports = {{.capacity = 2}}, .manual_clock = true});
  rig.switches[0]->stalled = true;
  const BatchId batch = rig.engine->AllocateBatch(10).value();
  ASSERT_TRUE(rig.engine->Submit(batch, std::vector<TransferRequest>(10, rig.Read(0, 100))));
  ASSERT_TRUE(rig.engine->Cancel(batch));
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(rig.engine->TaskStatus(batch, i)->state, TransferState::kCanceled);
  }
  EXPECT_EQ(rig.engine->Submit(batch, {}).error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(rig.engine->FreeBatch(batch));
}

TEST(EngineFailure, ATransferThatRunsOutOfTimeLetsGoOfItsMemory) {
  EngineRig rig;
  rig.switches[0]->stalled = true;
  const auto late = rig.engine->Transfer(std::array{rig.Read(0, 1000)}, 20ms);
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
  rig.switches[0]->stalled = false;
  const std::vector<std::byte> before = rig.local;
  ASSERT_TRUE(rig.engine->Transfer(std::array{rig.Read(5000, 10)}, kHangLimit));
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 5000, rig.local.begin()));
}

TEST(EngineFailure, TheCaretakerSendsAgainWhatNobodyPolls) {
  EngineRig rig({.transports = {{.background = true}}});
  rig.PublishPeer(2);
  const BatchId batch = rig.engine->AllocateBatch(1).value();
  std::atomic<bool> ended = false;
  ASSERT_TRUE(rig.engine->OnCompletion(batch, [&ended] { ended = true; }));
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 1000)}));
  EXPECT_TRUE(WaitUntil([&] { return ended.load(); }));
  EXPECT_EQ(rig.engine->BatchStatus(batch)->state, TransferState::kCompleted);
}

// An engine over two peers, the first of which has lost its connections and does not say where it
// is now. Let go of it before the engine ends.
struct RigWithASilentPeer : EngineRig {
  RigWithASilentPeer() : EngineRig({.transports = {{.background = true}}}) {
    SegmentDescriptor peer = *engine->Descriptor(segment).value();
    peer.name = kSilent;
    EXPECT_TRUE(directory->Publish(peer));
    silent = engine->OpenSegment(kSilent).value();
    directory->SetSilent(kSilent);
    PublishPeer(2);
  }
  [[nodiscard]] TransferRequest ReadSilent(std::size_t offset, std::size_t length) const {
    TransferRequest request = Read(offset, length);
    request.segment = silent;
    return request;
  }
  // The peer tells that it is a new incarnation.
  void LetGo() {
    SegmentDescriptor peer = *directory->Fetch(kPeer).value();
    peer.name = kSilent;
    EXPECT_TRUE(directory->Publish(peer));
    directory->SetSilent("");
  }

  static constexpr const char* kSilent = "silent:1";
  SegmentId silent = 0;
};

TEST(EngineFailure, APeerThatDoesNotAnswerHoldsUpNoOther) {
  RigWithASilentPeer rig;
  const BatchId waiting = SubmitOne(rig, rig.ReadSilent(0, 1000));
  ASSERT_TRUE(WaitUntil([&] { return rig.directory->waiting() == 1; }));
  const BatchId batch = rig.engine->AllocateBatch(1).value();
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  ASSERT_TRUE(rig.engine->OnCompletion(batch, [ended] { *ended = true; }));
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(5000, 1000)}));
  EXPECT_TRUE(WaitUntil([&] { return ended->load(); })) << "nobody polls: the caretaker's work";
  EXPECT_EQ(rig.engine->BatchStatus(batch)->state, TransferState::kCompleted);
  EXPECT_TRUE(rig.SameBytes(5000, 1000));
  EXPECT_EQ(rig.engine->BatchStatus(waiting)->state, TransferState::kWaiting);
  EXPECT_EQ(rig.directory->waiting(), 1) << "asked once, and not answered yet";
  rig.LetGo();
  EXPECT_TRUE(rig.engine->Wait(waiting, kHangLimit));
  EXPECT_TRUE(rig.SameBytes(0, 1000));
}

TEST(EngineFailure, APeerThatDoesNotAnswerHoldsUpNoOtherOfTheSameBatch) {
  RigWithASilentPeer rig;
  const BatchId batch = rig.engine->AllocateBatch(2).value();
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.ReadSilent(0, 1000), rig.Read(5000, 1000)}));
  EXPECT_TRUE(WaitUntil(
      [&] { return rig.engine->TaskStatus(batch, 1)->state == TransferState::kCompleted; }));
  ASSERT_TRUE(WaitUntil([&] { return rig.directory->waiting() == 1; }));
  EXPECT_FALSE(IsTerminal(rig.engine->TaskStatus(batch, 0)->state));
  rig.LetGo();
  EXPECT_TRUE(rig.engine->Wait(batch, kHangLimit));
}

TEST(EngineFailure, WaitingForAPeerThatDoesNotAnswerKeepsItsTime) {
  RigWithASilentPeer rig;
  EXPECT_EQ(rig.engine->Transfer(std::array{rig.ReadSilent(0, 1000)}, 50ms).error().code,
            ErrorCode::kTimeout);
  const BatchId batch = SubmitOne(rig, rig.ReadSilent(0, 1000));
  EXPECT_EQ(rig.engine->Wait(batch, 50ms).error().code, ErrorCode::kTimeout);
  EXPECT_TRUE(WaitUntil([&] { return rig.directory->waiting() == 1; }))
      << "neither has waited for the answer";
  rig.LetGo();
  EXPECT_TRUE(rig.engine->Wait(batch, kHangLimit));
}

TEST(EngineFailure, AnEngineThatStopsWaitsForNoPeerAndNoTransfer) {
  RigWithASilentPeer rig;
  const BatchId batch = SubmitOne(rig, rig.ReadSilent(0, 1000));
  ASSERT_TRUE(WaitUntil([&] { return rig.directory->waiting() == 1; }));
  rig.engine->Stop();
  EXPECT_TRUE(rig.directory->interrupted());
  EXPECT_EQ(rig.directory->waiting(), 0) << "nobody is left behind";
  EXPECT_EQ(rig.engine->BatchStatus(batch)->state, TransferState::kCanceled);
}

// Goal: whatever fails, each task ends once, completed tasks have their bytes, and nothing hangs.
// Method: random fault rates, capacities and paths from one seed; polls on a manual clock.
TEST(EngineFailure, EveryTaskEndsForAnySeed) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng random(seed);
    RigOptions options{.memory_bytes = 100'000, .manual_clock = true, .stall_limit = 5s};
    options.transports.clear();
    for (std::size_t i = random.Between(1, 3); i > 0; --i) {
      options.transports.push_back(
          {.traits = {.name = "fake",
                      .rank = static_cast<std::uint32_t>(random.Uniform(2)),
                      .max_slice_bytes = random.Between(100, 5000)},
           .capacity = random.Between(1, 40),
           .delay = static_cast<std::uint32_t>(random.Uniform(6)),
           .fail_percent = static_cast<std::uint32_t>(random.Uniform(60))});
    }
    options.window_slices = static_cast<std::uint32_t>(random.Between(1, 100));
    EngineRig rig(options);
    const std::size_t count = random.Between(1, 60);
    const BatchId batch = rig.engine->AllocateBatch(count).value();
    std::vector<TransferRequest> requests;
    for (std::size_t i = 0; i < count; ++i) {
      requests.push_back(rig.Read(i * 1500, random.Between(0, 1500)));
    }
    ASSERT_TRUE(rig.engine->Submit(batch, requests));
    bool all = false;
    for (int turn = 0; turn < 200'000 && !all; ++turn) {
      all = true;
      for (std::size_t i = 0; i < count; ++i) {
        all = IsTerminal(rig.engine->TaskStatus(batch, i)->state) && all;
      }
      rig.clock.Advance(1ms);
      if (random.Chance(1, 50)) {
        rig.switches[random.Uniform(rig.switches.size())]->stalled = random.Chance(1, 2);
      }
    }
    ASSERT_TRUE(all) << "tasks do not end";
    bool bad = false;
    for (std::size_t i = 0; i < count; ++i) {
      const TransferStatus status = rig.engine->TaskStatus(batch, i).value();
      if (status.state == TransferState::kCompleted) {
        EXPECT_EQ(status.transferred_bytes, requests[i].length_bytes);
        EXPECT_TRUE(rig.SameBytes(i * 1500, requests[i].length_bytes));
      } else {
        bad = true;
        EXPECT_FALSE(rig.engine->TaskError(batch, i)->message.empty());
      }
    }
    EXPECT_EQ(rig.engine->BatchStatus(batch)->state == TransferState::kCompleted, !bad);
    ASSERT_TRUE(rig.engine->FreeBatch(batch));
  }
}

TEST(EngineFailure, ThreadsWithABatchEachDoNotDisturbOneAnother) {
  EngineRig rig({.transports = {{.traits = {.name = "fake", .max_slice_bytes = 700},
                                 .capacity = 50,
                                 .fail_percent = 2,
                                 .background = true}}});
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kShare = 40'000;
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&rig, t] {
      Rng random(t);
      for (int round = 0; round < 60; ++round) {
        std::vector<TransferRequest> requests;
        for (std::size_t i = 0; i < 20; ++i) {
          requests.push_back(rig.Read(t * kShare + i * 2000, random.Between(1, 2000)));
        }
        Result<void> outcome;
        if (round % 2 == 0) {
          outcome = rig.engine->Transfer(requests, kHangLimit);
        } else {
          const BatchId batch = rig.engine->AllocateBatch(requests.size()).value();
          ASSERT_TRUE(rig.engine->Submit(batch, requests));
          if (round % 4 == 1) {
            outcome = rig.engine->Wait(batch, kHangLimit);
          } else {
            ASSERT_TRUE(
                WaitUntil([&] { return IsTerminal(rig.engine->BatchStatus(batch)->state); }));
            outcome = rig.engine->Wait(batch, kHangLimit);
          }
          ASSERT_TRUE(rig.engine->FreeBatch(batch));
        }
        ASSERT_TRUE(outcome) << outcome.error().ToString();
        for (std::size_t i = 0; i < 20; ++i) {
          ASSERT_TRUE(rig.SameBytes(t * kShare + i * 2000, requests[i].length_bytes));
        }
      }
    });
  }
}

TEST(EngineFailure, CancelFreeAndPollFromOtherThreadsAreSafe) {
  EngineRig rig({.transports = {{.capacity = 8, .fail_percent = 5, .background = true}}});
  std::atomic<BatchId> shared = 0;
  std::atomic<bool> stop = false;
  std::vector<std::jthread> pollers;
  pollers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    pollers.emplace_back([&] {
      while (!stop) {
        static_cast<void>(rig.engine->BatchStatus(shared));
        static_cast<void>(rig.engine->TaskStatus(shared, 3));
        std::this_thread::yield();
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    const BatchId batch = rig.engine->AllocateBatch(16).value();
    shared = batch;
    ASSERT_TRUE(rig.engine->Submit(batch, std::vector<TransferRequest>(16, rig.Read(0, 64))));
    if (round % 2 == 0) {
      ASSERT_TRUE(rig.engine->Cancel(batch));
    } else {
      static_cast<void>(rig.engine->Wait(batch, kHangLimit));
    }
    ASSERT_TRUE(WaitUntil([&] { return rig.engine->FreeBatch(batch).has_value(); }));
  }
  stop = true;
}

}  // namespace
}  // namespace mooncake::transfer
