#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <array>
#include <fstream>
#include <string>

#include "mooncake-common/src/base/mapped_memory.h"
#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/engine/engine_test_rig.h"

namespace mooncake::transfer {
namespace {

using namespace std::chrono_literals;

TEST(Engine, NeedsANameADirectoryAndATransport) {
  EXPECT_EQ(Engine::Create({}).error().code, ErrorCode::kInvalidArgument);
}

TEST(Engine, NumbersSegmentsInTheOrderOfOpening) {
  EngineRig rig;
  EXPECT_EQ(rig.segment, 1U);
  EXPECT_EQ(rig.engine->OpenSegment("/peer:1"), 1U) << "a leading slash is dropped";
  EXPECT_EQ(rig.engine->OpenSegment("self:1"), kLocalSegment);
  EXPECT_EQ(rig.engine->OpenSegment("nobody").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(rig.directory->Publish(SegmentDescriptor{.name = "other"}));
  EXPECT_EQ(rig.engine->OpenSegment("other"), 2U) << "a failed opening takes no number";
}

TEST(Engine, TransfersInOneCallInBothDirections) {
  EngineRig rig;
  const std::array reads = {rig.Read(0, 100), rig.Read(5000, 70'000)};
  ASSERT_TRUE(rig.engine->Transfer(reads, kHangLimit));
  EXPECT_TRUE(rig.SameBytes(0, 100));
  EXPECT_TRUE(rig.SameBytes(5000, 70'000));
  rig.local[300'000] = std::byte{42};
  const std::array writes = {rig.Request(Opcode::kWrite, 300'000, 1)};
  ASSERT_TRUE(rig.engine->Transfer(writes, kHangLimit));
  EXPECT_EQ(rig.remote[300'000], std::byte{42});
  EXPECT_TRUE(rig.engine->Transfer({}));
}

TEST(Engine, CutsLargeRequestsToWhatTheTransportTakes) {
  EngineRig rig({.transports = {{.traits = {.name = "fake", .max_slice_bytes = 1000}}}});
  const std::array reads = {rig.Read(0, 100'500)};
  ASSERT_TRUE(rig.engine->Transfer(reads, kHangLimit));
  EXPECT_TRUE(rig.SameBytes(0, 100'500));
  EXPECT_EQ(rig.switches[0]->posted, 101U);
}

TEST(Engine, ReportsTasksAndBatchesAsTheyEnd) {
  EngineRig rig;
  const BatchId batch = rig.engine->AllocateBatch(3).value();
  EXPECT_EQ(rig.engine->BatchStatus(batch)->state, TransferState::kCompleted) << "empty";
  rig.switches[0]->stalled = true;
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 10), rig.Read(0, 0)}));
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(100, 20)}));
  EXPECT_EQ(rig.engine->BatchStatus(batch)->state, TransferState::kWaiting);
  EXPECT_EQ(rig.engine->TaskStatus(batch, 0)->state, TransferState::kPending);
  EXPECT_EQ(rig.engine->TaskStatus(batch, 1)->state, TransferState::kCompleted) << "zero length";
  EXPECT_EQ(rig.engine->TaskStatus(batch, 3).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(rig.engine->FreeBatch(batch).error().code, ErrorCode::kBusy);
  rig.switches[0]->stalled = false;
  ASSERT_TRUE(rig.engine->Wait(batch, kHangLimit));
  EXPECT_EQ(rig.engine->BatchStatus(batch)->transferred_bytes, 30U);
  EXPECT_EQ(rig.engine->TaskStatus(batch, 2)->transferred_bytes, 20U);
  EXPECT_TRUE(rig.engine->FreeBatch(batch));
}

TEST(Engine, ABatchIsBusyUntilTheEndOfEachTaskWasTold) {
  EngineRig rig({.transports = {{.instant = true}}});
  const BatchId batch = rig.engine->AllocateBatch(3).value();
  ASSERT_TRUE(rig.engine->SubmitWithNotify(batch, std::array{rig.Read(0, 10), rig.Read(0, 0)},
                                           {.name = "n", .message = "m"}));
  EXPECT_EQ(rig.engine->FreeBatch(batch).error().code, ErrorCode::kBusy) << "nobody has asked";
  EXPECT_TRUE(rig.directory->sent().empty());
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(rig.engine->TaskStatus(batch, 1)->state, TransferState::kCompleted);
    EXPECT_EQ(rig.engine->FreeBatch(batch).error().code, ErrorCode::kBusy) << "but of one of two";
  }
  EXPECT_EQ(rig.engine->BatchStatus(batch)->state, TransferState::kCompleted);
  EXPECT_EQ(rig.directory->sent().size(), 1U) << "not lost with the batch";
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 10)}));
  EXPECT_EQ(rig.engine->FreeBatch(batch).error().code, ErrorCode::kBusy) << "one more came";
  EXPECT_EQ(rig.engine->TaskStatus(batch, 0)->state, TransferState::kCompleted);
  EXPECT_EQ(rig.engine->FreeBatch(batch).error().code, ErrorCode::kBusy) << "told of before";
  EXPECT_EQ(rig.engine->TaskStatus(batch, 2)->state, TransferState::kCompleted);
  EXPECT_TRUE(rig.engine->FreeBatch(batch));
}

TEST(Engine, RefusesMoreTasksThanTheCapacityAndKeepsTheRest) {
  EngineRig rig;
  const BatchId batch = rig.engine->AllocateBatch(2).value();
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 10)}));
  const auto over = rig.engine->Submit(batch, std::array{rig.Read(10, 10), rig.Read(20, 10)});
  EXPECT_EQ(over.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(10, 10)}));
  EXPECT_TRUE(rig.engine->Wait(batch, kHangLimit));
  EXPECT_EQ(rig.engine->AllocateBatch(0).error().code, ErrorCode::kInvalidArgument);
}

TEST(Engine, StaleAndInventedBatchIdsAreErrors) {
  EngineRig rig;
  const BatchId first = rig.engine->AllocateBatch(1).value();
  ASSERT_TRUE(rig.engine->FreeBatch(first));
  const BatchId second = rig.engine->AllocateBatch(1).value();  // The same place again.
  EXPECT_NE(first, second);
  for (const BatchId bad : {first, BatchId{0}, ~BatchId{0}, BatchId{1} << 40U, second + 1}) {
    EXPECT_EQ(rig.engine->TaskStatus(bad, 0).error().code, ErrorCode::kNotFound) << bad;
    EXPECT_EQ(rig.engine->BatchStatus(bad).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(rig.engine->Submit(bad, {}).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(rig.engine->Wait(bad).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(rig.engine->Cancel(bad).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(rig.engine->CompletionFd(bad).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(rig.engine->FreeBatch(bad).error().code, ErrorCode::kNotFound);
  }
  EXPECT_TRUE(rig.engine->FreeBatch(second));
}

TEST(Engine, RefusesAtOnceWhatThePeerDoesNotOffer) {
  EngineRig rig;
  auto past_the_end = rig.Read(0, 10);
  past_the_end.remote_address += rig.remote.size() - 9;
  for (const auto& bad : {past_the_end, TransferRequest{.local = rig.local.data(),
                                                        .segment = rig.segment,
                                                        .remote_address = 16,
                                                        .length_bytes = 1}}) {
    const auto refused = rig.engine->Transfer(std::array{rig.Read(0, 1), bad});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kAddressNotRegistered);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("peer:1"));
  }
  EXPECT_EQ(rig.switches[0]->posted, 0U) << "all or nothing";
  TransferRequest nowhere = rig.Read(0, 1);
  nowhere.segment = 77;
  EXPECT_EQ(rig.engine->Transfer(std::array{nowhere}).error().code, ErrorCode::kNotFound);
}

TEST(Engine, SeesMemoryThatThePeerRegisteredAfterItWasOpened) {
  EngineRig rig;
  std::vector<std::byte> more(4096, std::byte{9});
  SegmentDescriptor peer = **rig.engine->Descriptor(rig.segment);
  peer.buffers.push_back(BufferDescriptor{.address = reinterpret_cast<std::uint64_t>(more.data()),
                                          .length_bytes = more.size()});
  ASSERT_TRUE(rig.directory->Publish(peer));
  TransferRequest request = rig.Read(0, 4096);
  request.remote_address = reinterpret_cast<std::uint64_t>(more.data());
  ASSERT_TRUE(rig.engine->Transfer(std::array{request}, kHangLimit));
  EXPECT_EQ(rig.local[4095], std::byte{9});
}

TEST(Engine, LeavesTheCheckToPeersOfAnotherMake) {
  EngineRig rig;
  SegmentDescriptor old{.name = "old"};
  ASSERT_TRUE(rig.directory->Publish(old));
  rig.switches[0]->incarnation = 0;
  TransferRequest request = rig.Read(0, 16);
  request.segment = rig.engine->OpenSegment("old").value();
  EXPECT_TRUE(rig.engine->Transfer(std::array{request}, kHangLimit));
}

TEST(Engine, UnregisteredLocalMemoryIsRefusedWhereEveryPathNeedsIt) {
  EngineRig rig({.transports = {{.traits = {.name = "fake", .needs_local_registration = true}}}});
  const auto refused = rig.engine->Transfer(std::array{rig.Read(0, 16)});
  EXPECT_EQ(refused.error().code, ErrorCode::kAddressNotRegistered);
  const MemoryRegistration memory{.address = rig.local.data(), .length_bytes = rig.local.size()};
  ASSERT_TRUE(rig.engine->RegisterMemory(std::span(&memory, 1)));
  EXPECT_TRUE(rig.engine->Transfer(std::array{rig.Read(0, 16)}, kHangLimit));
}

TEST(Engine, UnregisteredLocalMemoryTakesAPathThatDoesNotNeedIt) {
  EngineRig rig(
      {.transports = {{.traits = {.name = "maps", .rank = 0, .needs_local_registration = true}},
                      {.traits = {.name = "asks", .rank = 1}}}});
  ASSERT_TRUE(rig.engine->Transfer(std::array{rig.Read(0, 16)}, kHangLimit));
  EXPECT_EQ(rig.switches[0]->posted, 0U);
  EXPECT_EQ(rig.switches[1]->posted, 1U);
}

TEST(Engine, PublishesWhatIsRegisteredForPeers) {
  EngineRig rig;
  const int before = rig.directory->publishes();
  const std::array memory = {
      MemoryRegistration{.address = rig.local.data(), .length_bytes = 100},
      MemoryRegistration{
          .address = rig.local.data() + 200, .length_bytes = 100, .remote_accessible = false}};
  ASSERT_TRUE(rig.engine->RegisterMemory(memory));
  EXPECT_EQ(rig.directory->publishes(), before + 1) << "one publish for a call";
  ASSERT_EQ(rig.engine->LocalDescriptor()->buffers.size(), 1U);
  EXPECT_EQ(rig.engine->LocalDescriptor()->buffers[0].name, "self:1");
  EXPECT_EQ(rig.directory->offered()->buffers.size(), 1U);
  EXPECT_TRUE(rig.engine->OverlapsRegistered(rig.local.data() + 99, 1));
  EXPECT_FALSE(rig.engine->OverlapsRegistered(rig.local.data() + 100, 100));
  EXPECT_EQ(rig.engine->RegisterMemory(memory).error().code, ErrorCode::kAddressOverlapped);
  const std::array<void*, 3> out = {rig.local.data(), rig.local.data() + 1, rig.local.data() + 200};
  EXPECT_EQ(rig.engine->UnregisterMemory(out).error().code, ErrorCode::kAddressNotRegistered);
  EXPECT_FALSE(rig.engine->OverlapsRegistered(rig.local.data(), rig.local.size()));
  EXPECT_TRUE(rig.directory->Fetch("self:1").value()->buffers.empty());
}

TEST(Engine, WhatCannotBePublishedIsNotRegistered) {
  EngineRig rig;
  const std::array memory = {
      MemoryRegistration{.address = rig.local.data(), .length_bytes = 100},
      MemoryRegistration{.address = rig.local.data() + 200, .length_bytes = 100}};
  rig.directory->SetDown(true);
  EXPECT_EQ(rig.engine->RegisterMemory(memory).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(rig.engine->AllocateManaged(100).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(rig.engine->AllocateManaged(100, {.dedicated = true}).error().code,
            ErrorCode::kUnavailable);
  EXPECT_FALSE(rig.engine->OverlapsRegistered(rig.local.data(), rig.local.size()));
  EXPECT_TRUE(rig.directory->offered()->buffers.empty());
  rig.directory->SetDown(false);
  ASSERT_TRUE(rig.engine->RegisterMemory(memory));
  EXPECT_EQ(rig.directory->Fetch("self:1").value()->buffers.size(), 2U);
}

TEST(Engine, FreesManagedMemoryAlthoughNobodyCanBeTold) {
  EngineRig rig;
  void* const memory = rig.engine->AllocateManaged(100, {.dedicated = true}).value();
  rig.directory->SetDown(true);
  EXPECT_TRUE(rig.engine->FreeManaged(memory));
  EXPECT_FALSE(CheckMapped(memory, 100, MemoryAccess::kRead));
  EXPECT_TRUE(rig.directory->offered()->buffers.empty());
  EXPECT_EQ(rig.engine->FreeManaged(memory).error().code, ErrorCode::kAddressNotRegistered);
}

TEST(Engine, RevokesWhatPeersKnowOf) {
  int revoked = 0;
  EngineRig rig({.revoke = [&revoked]() -> Result<void> {
    ++revoked;
    return {};
  }});
  const std::array memory = {
      MemoryRegistration{.address = rig.local.data(), .length_bytes = 100},
      MemoryRegistration{.address = rig.local.data() + 200, .length_bytes = 100},
      MemoryRegistration{
          .address = rig.local.data() + 400, .length_bytes = 100, .remote_accessible = false}};
  ASSERT_TRUE(rig.engine->RegisterMemory(memory));
  void* address = memory[0].address;
  ASSERT_TRUE(rig.engine->UnregisterMemory(std::span(&address, 1)));
  EXPECT_EQ(revoked, 1);
  address = memory[1].address;
  ASSERT_TRUE(rig.engine->UnregisterMemory(std::span(&address, 1), /*publish=*/false));
  EXPECT_EQ(revoked, 2);
  address = memory[2].address;
  ASSERT_TRUE(rig.engine->UnregisterMemory(std::span(&address, 1), /*publish=*/false));
  EXPECT_EQ(revoked, 2) << "no peer has heard of it";
}

TEST(Engine, KeepsAnnouncingForLaterWhenAsked) {
  EngineRig rig;
  const int before = rig.directory->publishes();
  const MemoryRegistration memory{.address = rig.local.data(), .length_bytes = 100};
  ASSERT_TRUE(rig.engine->RegisterMemory(std::span(&memory, 1), /*publish=*/false));
  EXPECT_EQ(rig.directory->publishes(), before);
  EXPECT_EQ(rig.directory->offered()->buffers.size(), 1U) << "who asks us directly sees it";
}

TEST(Engine, ReachesItsOwnMemoryThroughSegmentZero) {
  EngineRig rig;
  rig.switches[0]->incarnation = 0;
  const MemoryRegistration memory{.address = rig.remote.data(), .length_bytes = rig.remote.size()};
  TransferRequest request = rig.Read(0, 5000);
  request.segment = kLocalSegment;
  ASSERT_TRUE(rig.engine->RegisterMemory(std::span(&memory, 1)));
  ASSERT_TRUE(rig.engine->Transfer(std::array{request}, kHangLimit));
  EXPECT_TRUE(rig.SameBytes(0, 5000));
}

TEST(Engine, SignalsTheEndOnADescriptorAndByACallback) {
  EngineRig rig({.transports = {{.background = true}}});
  rig.switches[0]->stalled = true;
  const BatchId batch = rig.engine->AllocateBatch(8).value();
  const int fd = rig.engine->CompletionFd(batch).value();
  std::atomic<int> calls = 0;
  ASSERT_TRUE(rig.engine->OnCompletion(batch, [&calls] { ++calls; }));
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 100), rig.Read(200, 100)}));
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  EXPECT_EQ(calls, 0);
  rig.switches[0]->stalled = false;
  ASSERT_EQ(::poll(&waiting, 1, kHangLimitMs), 1) << "nobody polled the batch, yet it must end";
  EXPECT_EQ(rig.engine->BatchStatus(batch)->state, TransferState::kCompleted);
  ASSERT_TRUE(WaitUntil([&] { return calls != 0; }));
  ASSERT_TRUE(rig.engine->OnCompletion(batch, [&calls] { ++calls; }));
  EXPECT_EQ(calls, 2) << "it had ended already";
}

TEST(Engine, ABatchMayBeFreedInItsOwnCallback) {
  EngineRig rig({.transports = {{.instant = true}}});
  const BatchId batch = rig.engine->AllocateBatch(1).value();
  bool freed = false;
  ASSERT_TRUE(
      rig.engine->OnCompletion(batch, [&] { freed = rig.engine->FreeBatch(batch).has_value(); }));
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 100)}));
  EXPECT_TRUE(freed);
  EXPECT_FALSE(rig.engine->BatchStatus(batch));
}

TEST(Engine, SendsANotifyOnceAfterTheBatchWasSeenCompleted) {
  EngineRig rig;
  const BatchId batch = rig.engine->AllocateBatch(1).value();
  ASSERT_TRUE(rig.engine->SubmitWithNotify(batch, std::array{rig.Read(0, 100)},
                                           {.name = "n", .message = "m"}));
  EXPECT_TRUE(rig.directory->sent().empty());
  ASSERT_TRUE(rig.engine->Wait(batch, kHangLimit));
  EXPECT_TRUE(rig.engine->BatchStatus(batch));
  ASSERT_EQ(rig.directory->sent().size(), 1U);
  EXPECT_EQ(rig.directory->sent()[0].first, "peer:1");
  EXPECT_EQ(rig.directory->sent()[0].second, (Notify{.name = "n", .message = "m"}));
  rig.directory->Deliver({.name = "a", .message = "b"});
  EXPECT_EQ(rig.engine->TakeNotifies().size(), 1U);
  EXPECT_TRUE(rig.engine->ProbePeer("peer:1"));
  EXPECT_FALSE(rig.engine->ProbePeer("nobody"));
}

TEST(Engine, MovesAHugeBatchInAWindowOfFewSlices) {
  constexpr std::size_t kCount = 200'000;
  EngineRig rig({.transports = {{.delay = 0}}, .window_slices = 128});
  const auto resident_kib = [] {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line)) {
      if (line.starts_with("VmRSS:")) {
        return std::stol(line.substr(6));
      }
    }
    return 0L;
  };
  std::vector<TransferRequest> requests(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    requests[i] = rig.Read(i * 5 % (rig.local.size() - 5), 5);
  }
  const long before = resident_kib();
  ASSERT_TRUE(rig.engine->Transfer(requests, kHangLimit));
  EXPECT_LE(rig.switches[0]->max_inflight, 64U) << "the fake's capacity";
  EXPECT_EQ(rig.switches[0]->posted, kCount);
  EXPECT_TRUE(rig.SameBytes(0, kCount * 5));
  EXPECT_LT(resident_kib() - before, 200L * 1024);
}

TEST(Engine, ABatchThatFoundTheTransportFullGoesOnWhenAnotherMakesRoom) {
  EngineRig rig({.transports = {{.capacity = 4, .background = true}}});
  rig.switches[0]->stalled = true;
  const BatchId first = rig.engine->AllocateBatch(4).value();
  ASSERT_TRUE(rig.engine->Submit(
      first, std::array{rig.Read(0, 1), rig.Read(1, 1), rig.Read(2, 1), rig.Read(3, 1)}));
  const BatchId second = rig.engine->AllocateBatch(1).value();
  const int fd = rig.engine->CompletionFd(second).value();
  ASSERT_TRUE(rig.engine->Submit(second, std::array{rig.Read(4, 1)}));
  EXPECT_EQ(rig.switches[0]->posted, 4U);
  rig.switches[0]->stalled = false;
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&waiting, 1, kHangLimitMs), 1);
}

TEST(Engine, StopEndsWhatIsInFlightAndRefusesNewWork) {
  EngineRig rig;
  rig.switches[0]->stalled = true;
  const BatchId batch = rig.engine->AllocateBatch(1).value();
  ASSERT_TRUE(rig.engine->Submit(batch, std::array{rig.Read(0, 100)}));
  rig.engine->Stop();
  rig.engine->Stop();
  EXPECT_EQ(rig.engine->BatchStatus(batch)->state, TransferState::kCanceled);
  EXPECT_EQ(rig.engine->Transfer(std::array{rig.Read(0, 1)}).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(rig.directory->Fetch("self:1").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mooncake::transfer
