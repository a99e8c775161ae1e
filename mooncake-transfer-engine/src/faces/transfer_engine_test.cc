// The classic C++ and C faces over two real engines of this process.
#include "mooncake-transfer-engine/include/transfer_engine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "mooncake-transfer-engine/include/transfer_engine_c.h"
#include "mooncake-transfer-engine/src/faces/error_numbers.h"

namespace mooncake {
namespace {

class ClassicFace : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ours_.init("P2PHANDSHAKE", "127.0.0.1"), 0);
    ASSERT_EQ(peer_.init("P2PHANDSHAKE", "127.0.0.1"), 0);
    ASSERT_EQ(peer_.registerLocalMemory(remote_.data(), remote_.size()), 0);
    ASSERT_EQ(ours_.registerLocalMemory(local_.data(), local_.size(), "cpu:0"), 0);
    segment_ = ours_.openSegment(peer_.getLocalIpAndPort());
    ASSERT_EQ(segment_, 1U);
  }

  TransferRequest Read(std::size_t offset, std::size_t length) {
    return {.opcode = TransferRequest::READ,
            .source = local_.data() + offset,
            .target_id = segment_,
            .target_offset = reinterpret_cast<std::uint64_t>(remote_.data()) + offset,
            .length = length};
  }

  TransferStatus Finish(BatchID batch, std::size_t task) {
    TransferStatus status{};
    do {
      EXPECT_TRUE(ours_.getTransferStatus(batch, task, status).ok());
    } while (status.s == WAITING || status.s == PENDING);
    return status;
  }

  std::vector<char> local_ = std::vector<char>(100'000);
  std::vector<char> remote_ = std::vector<char>(100'000, 'r');
  TransferEngine ours_;
  TransferEngine peer_;
  SegmentID segment_ = 0;
};

TEST_F(ClassicFace, MovesABatchAndReportsTasks) {
  const BatchID batch = ours_.allocateBatchID(2);
  ASSERT_NE(batch, INVALID_BATCH_ID);
  ASSERT_TRUE(ours_.submitTransfer(batch, {Read(0, 5000), Read(50'000, 10)}).ok());
  EXPECT_EQ(ours_.submitTransfer(batch, {Read(0, 1)}).code(), Status::Code::kTooManyRequests);
  EXPECT_EQ(Finish(batch, 0).s, COMPLETED);
  EXPECT_EQ(Finish(batch, 1).transferred_bytes, 10U);
  TransferStatus status{};
  EXPECT_TRUE(ours_.getBatchTransferStatus(batch, status).ok());
  EXPECT_EQ(status.s, COMPLETED);
  EXPECT_EQ(ours_.getTransferStatus(batch, 2, status).code(), Status::Code::kInvalidArgument);
  EXPECT_TRUE(ours_.freeBatchID(batch).ok());
  EXPECT_FALSE(ours_.freeBatchID(batch).ok());
  EXPECT_EQ(local_[4999], 'r');
  EXPECT_EQ(local_[5000], 0);
}

TEST_F(ClassicFace, AnswersWithThePublishedNumbers) {
  EXPECT_EQ(ours_.registerLocalMemory(local_.data(), 10), -7);
  EXPECT_EQ(ours_.registerLocalMemory(remote_.data(), 0), -1);
  EXPECT_EQ(ours_.unregisterLocalMemory(remote_.data()), -3);
  EXPECT_TRUE(ours_.checkOverlap(local_.data() + 5, 1));
  EXPECT_EQ(ours_.openSegment("127.0.0.1:1"), UINT64_MAX);
  EXPECT_EQ(ours_.installTransport("rdma", nullptr), nullptr);
  EXPECT_STREQ(ours_.installTransport("tcp", nullptr)->getName(), "tcp");
  const BatchID batch = ours_.allocateBatchID(1);
  TransferRequest beyond = Read(0, 10);
  beyond.target_offset = 16;
  EXPECT_EQ(ours_.submitTransfer(batch, {beyond}).code(), Status::Code::kAddressNotRegistered);
  TransferStatus status{};
  EXPECT_TRUE(ours_.getBatchTransferStatus(batch, status).ok());
  EXPECT_EQ(status.s, COMPLETED) << "an empty batch";
  EXPECT_TRUE(ours_.freeBatchID(batch).ok());
  EXPECT_TRUE(ours_.CheckSegmentStatus(segment_).ok());
  EXPECT_EQ(ours_.probePeerAliveByID(segment_), PeerLiveness::Alive);
  EXPECT_EQ(ours_.getLocalTopologyString(), "{}\n");
  EXPECT_EQ(transfer::StatusNumber(ErrorCode::kNotSupported), 999);
  EXPECT_EQ(TransferEngine().registerLocalMemory(local_.data(), 1), -1) << "before init()";
}

TEST_F(ClassicFace, SendsNotifiesAtOnceAndAfterABatch) {
  ASSERT_EQ(ours_.sendNotifyByID(segment_, {.name = "a", .notify_msg = "1"}), 0);
  const BatchID batch = ours_.allocateBatchID(1);
  ASSERT_TRUE(
      ours_.submitTransferWithNotify(batch, {Read(0, 10)}, {.name = "b", .notify_msg = "2"}).ok());
  EXPECT_EQ(Finish(batch, 0).s, COMPLETED);
  std::vector<TransferMetadata::NotifyDesc> notifies;
  ASSERT_EQ(peer_.getNotifies(notifies), 0);
  ASSERT_EQ(notifies.size(), 2U);
  EXPECT_EQ(notifies[1].notify_msg, "2");
}

TEST_F(ClassicFace, ScattersFragmentsAndTellsTheEndOfEach) {
  const std::array<std::size_t, 3> local_offsets = {0, 100, 200};
  const std::array<std::size_t, 3> remote_offsets = {50, 0, 10};
  const std::array<std::size_t, 3> lengths = {10, 20, 30};
  std::vector<std::size_t> ended;
  ScatterTransferRange range{.opcode = TransferRequest::READ,
                             .remote_segment = peer_.getLocalIpAndPort(),
                             .remote_base_offset = reinterpret_cast<std::uint64_t>(remote_.data()),
                             .remote_size = remote_.size(),
                             .local_buffer = local_.data(),
                             .local_capacity = local_.size(),
                             .local_offsets = local_offsets,
                             .remote_offsets = remote_offsets,
                             .lengths = lengths,
                             .on_fragment_complete = [&](std::size_t i, const Status& status) {
                               EXPECT_TRUE(status.ok());
                               ended.push_back(i);
                             }};
  EXPECT_TRUE(ours_.transferScatter({range}).ok());
  EXPECT_EQ(ended, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(local_[9], 'r');
  EXPECT_EQ(local_[10], 0);
  EXPECT_EQ(local_[229], 'r');
  range.remote_size = 59;
  EXPECT_EQ(ours_.transferScatter({range}).code(), Status::Code::kInvalidArgument);
  EXPECT_EQ(ended.size(), 3U);
}

TEST_F(ClassicFace, MovesWithItsEngine) {
  TransferEngine moved(std::move(ours_));
  EXPECT_NE(moved.getRpcPort(), 0);
  ours_ = std::move(moved);
  const BatchID batch = ours_.allocateBatchID(1);
  ASSERT_TRUE(ours_.submitTransfer(batch, {Read(0, 1)}).ok());
  EXPECT_EQ(Finish(batch, 0).s, COMPLETED);
}

TEST_F(ClassicFace, TheSameFromC) {
  transfer_engine_t engine = createTransferEngine("P2PHANDSHAKE", "127.0.0.1", "", 0, 1);
  ASSERT_NE(engine, nullptr);
  std::array<char, 64> name{};
  EXPECT_EQ(getLocalIpAndPort(engine, name.data(), name.size()), 0);
  EXPECT_EQ(getLocalIpAndPort(engine, name.data(), 3), -1);
  std::vector<char> memory(1000);
  buffer_entry_t entry{.addr = memory.data(), .length = memory.size()};
  ASSERT_EQ(registerLocalMemoryBatch(engine, &entry, 1, "cpu:0"), 0);
  EXPECT_EQ(registerLocalMemory(engine, memory.data(), 1, nullptr, 1), -7);
  const segment_id_t segment = openSegmentNoCache(engine, peer_.getLocalIpAndPort().c_str());
  ASSERT_EQ(segment, 1);
  EXPECT_LT(openSegment(engine, "127.0.0.1:1"), 0);
  const batch_id_t batch = allocateBatchID(engine, 2);
  transfer_request_t request{.opcode = OPCODE_READ,
                             .source = memory.data(),
                             .target_id = segment,
                             .target_offset = reinterpret_cast<std::uint64_t>(remote_.data()),
                             .length = 1000};
  ASSERT_EQ(submitTransfer(engine, batch, &request, 1), 0);
  transfer_status_t status{};
  do {
    ASSERT_EQ(getTransferStatus(engine, batch, 0, &status), 0);
  } while (status.status < STATUS_INVALID);
  EXPECT_EQ(status.status, STATUS_COMPLETED);
  EXPECT_EQ(memory[999], 'r');
  EXPECT_EQ(getTransferStatus(engine, batch, 7, &status), 1);
  request.opcode = 9;
  EXPECT_EQ(submitTransfer(engine, batch, &request, 1), 1);
  EXPECT_EQ(freeBatchID(engine, batch), 0);
  char n[] = "n";
  char m[] = "m";
  EXPECT_EQ(genNotifyInEngine(engine, 1, {.name = n, .msg = m}), 0);
  ASSERT_EQ(ours_.sendNotifyByName(name.data(), {.name = "x", .notify_msg = "y"}), 0);
  int size = 0;
  notify_msg_t* messages = getNotifsFromEngine(engine, &size);
  ASSERT_EQ(size, 1);
  EXPECT_STREQ(messages[0].msg, "y");
  EXPECT_EQ(freeNotifsMsgBuf(messages, size), 0);
  size_t count = 4;
  EXPECT_EQ(getNicLoadStats(engine, nullptr, &count), 0);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(warmupEfaSegment(engine, "x"), 0);
  EXPECT_EQ(syncSegmentCache(engine), 0);
  EXPECT_EQ(installTransport(engine, "nosuch", nullptr), nullptr);
  std::array<char, 256> links{};
  EXPECT_EQ(showLinks(engine, links.data(), links.size(), 1), 0);
  void* address = memory.data();
  EXPECT_EQ(unregisterLocalMemoryBatch(engine, &address, 1), 0);
  EXPECT_EQ(closeSegment(engine, segment), 0);
  destroyTransferEngine(engine);
  EXPECT_EQ(createTransferEngine("nonsense://", "127.0.0.1", "", 0, 0), nullptr);
  EXPECT_EQ(registerLocalMemory(nullptr, nullptr, 1, nullptr, 1), -1);
}

TEST(GracefulShutdownDeathTest, ASignalStopsTheEngineAndEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        TransferEngine engine;
        if (engine.init("P2PHANDSHAKE", "127.0.0.1") == 0) {
          engine.enableGracefulShutdown();
          ::raise(SIGTERM);
          ::pause();
        }
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace mooncake
