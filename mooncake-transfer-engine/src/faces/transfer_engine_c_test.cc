// The C face over real engines of this process, from C and with what C callers get wrong.
#include "mooncake-transfer-engine/include/transfer_engine_c.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/faces/transfer_engine_c_smoke.h"

namespace mooncake {
namespace {

TEST(CFace, IsUsableFromC) { EXPECT_EQ(RunTransferEngineFromC(), 0) << "line of the C file"; }

class CFaceTest : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = createTransferEngine("P2PHANDSHAKE", "127.0.0.1", nullptr, 0, 1);
    ASSERT_NE(engine_, nullptr);
    ASSERT_EQ(registerLocalMemory(engine_, memory_.data(), memory_.size(), nullptr, 1), 0);
  }
  void TearDown() override { destroyTransferEngine(engine_); }

  // Within the engine's own memory.
  transfer_request_t Copy() {
    return {.opcode = OPCODE_READ,
            .source = memory_.data(),
            .target_id = LOCAL_SEGMENT,
            .target_offset = reinterpret_cast<std::uint64_t>(memory_.data()) + 500,
            .length = 100};
  }

  std::vector<char> memory_ = std::vector<char>(1000, 'm');
  transfer_engine_t engine_ = nullptr;
};

TEST_F(CFaceTest, ReturnsNegativeNumbersAboutMemoryAndSegments) {
  EXPECT_EQ(registerLocalMemory(engine_, memory_.data(), 1, nullptr, 1), -7);
  EXPECT_EQ(registerLocalMemory(engine_, memory_.data(), 0, nullptr, 1), -1);
  EXPECT_EQ(unregisterLocalMemory(engine_, static_cast<void*>(&engine_)), -3);
  std::vector<char> more(1000);
  buffer_entry_t entry{.addr = more.data(), .length = more.size()};
  EXPECT_EQ(registerLocalMemoryBatch(engine_, &entry, 1, "cpu:0"), 0);
  void* address = more.data();
  EXPECT_EQ(unregisterLocalMemoryBatch(engine_, &address, 1), 0);
  EXPECT_EQ(unregisterLocalMemoryBatch(engine_, &address, 1), -3);
  EXPECT_LT(openSegment(engine_, "127.0.0.1:1"), 0);
  EXPECT_LT(openSegmentNoCache(engine_, "127.0.0.1:1"), 0);
  EXPECT_LT(genNotifyInEngine(engine_, 77, {.name = nullptr, .msg = nullptr}), 0);
}

TEST_F(CFaceTest, ReturnsPositiveStatusesAboutBatches) {
  const batch_id_t batch = allocateBatchID(engine_, 1);
  transfer_status_t status{};
  transfer_request_t request = Copy();
  EXPECT_EQ(getTransferStatus(engine_, batch, 0, &status), 1) << "no such task yet";
  request.opcode = 9;
  EXPECT_EQ(submitTransfer(engine_, batch, &request, 1), 1);
  request = Copy();
  request.target_id = -1;
  EXPECT_EQ(submitTransfer(engine_, batch, &request, 1), 1) << "what openSegment fails with";
  std::array<transfer_request_t, 2> two = {Copy(), Copy()};
  EXPECT_EQ(submitTransfer(engine_, batch, two.data(), two.size()), 2) << "over the capacity";
  ASSERT_EQ(submitTransfer(engine_, batch, two.data(), 1), 0);
  ASSERT_TRUE(WaitUntil([&] {
    return getTransferStatus(engine_, batch, 0, &status) != 0 || status.status >= STATUS_INVALID;
  }));
  EXPECT_EQ(status.status, STATUS_COMPLETED);
  EXPECT_EQ(status.transferred_bytes, 100U);
  EXPECT_EQ(freeBatchID(engine_, batch), 0);
  EXPECT_EQ(freeBatchID(engine_, batch), 1) << "freed before";
  EXPECT_EQ(allocateBatchID(engine_, 0), INVALID_BATCH);
}

TEST_F(CFaceTest, OpensItselfAsTheLocalSegment) {
  std::array<char, 64> name{};
  ASSERT_EQ(getLocalIpAndPort(engine_, name.data(), name.size()), 0);
  EXPECT_EQ(openSegment(engine_, name.data()), LOCAL_SEGMENT);
  EXPECT_EQ(openSegmentNoCache(engine_, name.data()), LOCAL_SEGMENT);
  EXPECT_EQ(closeSegment(engine_, LOCAL_SEGMENT), 0);
  EXPECT_EQ(syncSegmentCache(engine_), 0);
  EXPECT_EQ(getLocalIpAndPort(engine_, name.data(), 3), -1) << "does not fit";
  EXPECT_EQ(removeLocalSegment(engine_, name.data()), 0);
}

TEST_F(CFaceTest, AnswersWithoutNics) {
  EXPECT_NE(installTransport(engine_, "tcp", nullptr), nullptr);
  EXPECT_EQ(installTransport(engine_, "rdma", nullptr), nullptr);
  EXPECT_EQ(uninstallTransport(engine_, "tcp"), 0);
  EXPECT_EQ(discoverTopology(engine_), 0);
  EXPECT_EQ(warmupEfaSegment(engine_, "anybody"), 0);
  nic_load_stat_t stat{};
  size_t count = 1;
  EXPECT_EQ(getNicLoadStats(engine_, &stat, &count), 0);
  EXPECT_EQ(count, 0U);
  std::array<char, 256> links{};
  EXPECT_EQ(showLinks(engine_, links.data(), links.size(), 1), 0);
  EXPECT_STREQ(links.data(), R"({"local_nics":[],"topology":{}})");
  EXPECT_EQ(showLinks(engine_, links.data(), 5, 1), -1);
}

TEST_F(CFaceTest, TakesNullForAnError) {
  EXPECT_EQ(createTransferEngine("nonsense://", "127.0.0.1", "", 0, 0), nullptr);
  EXPECT_EQ(createTransferEngine(nullptr, nullptr, nullptr, 0, 0), nullptr);
  EXPECT_EQ(registerLocalMemory(nullptr, memory_.data(), 1, nullptr, 1), -1);
  EXPECT_EQ(registerLocalMemoryBatch(engine_, nullptr, 1, nullptr), -1);
  EXPECT_EQ(unregisterLocalMemoryBatch(engine_, nullptr, 1), -1);
  EXPECT_LT(openSegment(nullptr, nullptr), 0);
  EXPECT_LT(openSegment(engine_, nullptr), 0);
  EXPECT_EQ(allocateBatchID(nullptr, 1), INVALID_BATCH);
  const batch_id_t batch = allocateBatchID(engine_, 1);
  EXPECT_EQ(submitTransfer(engine_, batch, nullptr, 1), 1);
  EXPECT_EQ(submitTransfer(engine_, batch, nullptr, 0), 0);
  EXPECT_EQ(getTransferStatus(engine_, batch, 0, nullptr), 1);
  EXPECT_EQ(freeBatchID(engine_, batch), 0);
  EXPECT_EQ(getNotifsFromEngine(engine_, nullptr), nullptr);
  int size = 1;
  EXPECT_EQ(getNotifsFromEngine(engine_, &size), nullptr);
  EXPECT_EQ(size, 0);
  EXPECT_EQ(freeNotifsMsgBuf(nullptr, 0), 0);
  EXPECT_EQ(getNicLoadStats(engine_, nullptr, nullptr), 1);
  EXPECT_EQ(showLinks(engine_, nullptr, 0, 0), -1);
  EXPECT_EQ(getLocalIpAndPort(engine_, nullptr, 10), -1);
  destroyTransferEngine(nullptr);
  enableGracefulShutdown(nullptr);
}

}  // namespace
}  // namespace mooncake
