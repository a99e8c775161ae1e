// The classic C++ face over two real engines of this process.
#include "mooncake-transfer-engine/include/transfer_engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "mooncake-common/src/test_support/wait_until.h"
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
    EXPECT_TRUE(WaitUntil([&] {
      return !ours_.getTransferStatus(batch, task, status).ok() ||
             (status.s != WAITING && status.s != PENDING);
    }));
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
  EXPECT_EQ(ours_.freeBatchID(batch).code(), Status::Code::kBatchBusy) << "one was not polled";
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

TEST_F(ClassicFace, TellsOfItsOwnSegmentAndOfPeers) {
  const std::string name = peer_.getLocalIpAndPort();
  const auto metadata = ours_.getMetadata();
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(metadata->getSegmentID(name), segment_);
  const auto seen = metadata->getSegmentDescByID(segment_);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->name, name);
  EXPECT_EQ(seen->protocol, "tcp");
  ASSERT_EQ(seen->buffers.size(), 1U);
  EXPECT_EQ(seen->buffers[0].addr, reinterpret_cast<std::uint64_t>(remote_.data()));
  EXPECT_EQ(seen->buffers[0].length, remote_.size());

  std::vector<char> more(10);
  ASSERT_EQ(peer_.registerLocalMemory(more.data(), more.size()), 0);
  EXPECT_EQ(metadata->getSegmentDescByName(name)->buffers.size(), 1U) << "as asked for before";
  EXPECT_EQ(metadata->getSegmentDescByName(name, true)->buffers.size(), 2U);
  EXPECT_EQ(metadata->getSegmentDescByID(LOCAL_SEGMENT_ID, true)->buffers.size(), 1U);
  EXPECT_EQ(metadata->localRpcMeta().rpc_port, ours_.getRpcPort());
  EXPECT_EQ(metadata->sendProbe(name), 0);
  EXPECT_EQ(metadata->sendNotify(name, {.name = "a", .notify_msg = "1"}), 0);
  std::vector<TransferMetadata::NotifyDesc> notifies;
  ASSERT_EQ(peer_.getNotifies(notifies), 0);
  ASSERT_EQ(notifies.size(), 1U);
  EXPECT_EQ(notifies[0].notify_msg, "1");
  EXPECT_EQ(metadata->removeSegmentDesc(name), 0) << "nothing is kept anywhere";

  testing::internal::CaptureStderr();
  metadata->dumpMetadataContent(name);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(R"("name":")" + name), std::string::npos);
}

TEST_F(ClassicFace, MetadataOutlivesItsEngine) {
  const auto metadata = ours_.getMetadata();
  EXPECT_EQ(TransferEngine().getMetadata(), nullptr) << "before init()";
  EXPECT_EQ(metadata->getSegmentDescByName("127.0.0.1:1"), nullptr) << "nobody is there";
  EXPECT_EQ(metadata->getSegmentDescByID(99), nullptr);
  EXPECT_LT(metadata->sendProbe("127.0.0.1:1"), 0);
  ours_.freeEngine();
  EXPECT_EQ(metadata->getSegmentDescByID(LOCAL_SEGMENT_ID), nullptr);
  EXPECT_EQ(metadata->getSegmentID("127.0.0.1:1"), UINT64_MAX);
  EXPECT_EQ(metadata->removeSegmentDesc("127.0.0.1:1"), -1);
  EXPECT_EQ(metadata->sendNotify("127.0.0.1:1", {}), -1);
  EXPECT_EQ(metadata->sendProbe("127.0.0.1:1"), -1);
  EXPECT_EQ(metadata->localRpcMeta().rpc_port, 0);
  metadata->dumpMetadataContent();
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

TEST_F(ClassicFace, ReadsAndWritesBothWays) {
  std::fill(local_.begin(), local_.begin() + 10, 'w');
  TransferRequest write = Read(0, 10);
  write.opcode = TransferRequest::WRITE;
  const BatchID batch = ours_.allocateBatchID(1);
  ASSERT_TRUE(ours_.submitTransfer(batch, {write}).ok());
  EXPECT_EQ(Finish(batch, 0).s, COMPLETED);
  EXPECT_EQ(std::string(remote_.data(), 12), "wwwwwwwwwwrr");
}

TEST_F(ClassicFace, AnUnknownIdIsAnInvalidArgumentOfBatches) {
  TransferStatus status{};
  EXPECT_EQ(ours_.getTransferStatus(12345, 0, status).code(), Status::Code::kInvalidArgument);
  EXPECT_EQ(ours_.getBatchTransferStatus(12345, status).code(), Status::Code::kInvalidArgument);
  EXPECT_EQ(ours_.freeBatchID(INVALID_BATCH_ID).code(), Status::Code::kInvalidArgument);
  EXPECT_EQ(ours_.allocateBatchID(0), INVALID_BATCH_ID);
  const BatchID batch = ours_.allocateBatchID(1);
  TransferRequest nowhere = Read(0, 10);
  nowhere.target_id = 99;
  EXPECT_EQ(ours_.submitTransfer(batch, {nowhere}).code(), Status::Code::kInvalidArgument);
  EXPECT_FALSE(ours_.CheckSegmentStatus(99).ok());
  EXPECT_EQ(ours_.probePeerAliveByID(99), PeerLiveness::Unreachable);
  EXPECT_EQ(transfer::StatusNumber(ErrorCode::kBusy), static_cast<int>(Status::Code::kBatchBusy));
}

TEST_F(ClassicFace, ABatchWithAFailedTaskHasFailed) {
  ASSERT_EQ(peer_.unregisterLocalMemory(remote_.data()), 0);
  const BatchID batch = ours_.allocateBatchID(1);
  ASSERT_TRUE(ours_.submitTransfer(batch, {Read(0, 10)}).ok()) << "checked against the older copy";
  TransferStatus status{};
  ASSERT_TRUE(WaitUntil(
      [&] { return !ours_.getBatchTransferStatus(batch, status).ok() || status.s != WAITING; }));
  EXPECT_EQ(status.s, FAILED);
  EXPECT_EQ(Finish(batch, 0).s, FAILED);
  EXPECT_TRUE(ours_.freeBatchID(batch).ok());
}

TEST_F(ClassicFace, NoticesThatThePeerIsGone) {
  EXPECT_EQ(peer_.freeEngine(), 0);
  EXPECT_EQ(ours_.probePeerAliveByID(segment_), PeerLiveness::Unreachable);
  EXPECT_FALSE(ours_.CheckSegmentStatus(segment_).ok());
  EXPECT_LT(ours_.sendNotifyByID(segment_, {.name = "a", .notify_msg = "1"}), 0);
}

// Goal: a wait that only looks returns, and says so; a wait without an end in sight does not
// overflow.
TEST_F(ClassicFace, WaitsForAScatterAsLongAsToldAndNoLonger) {
  const std::array<std::size_t, 1> offsets = {0};
  const std::array<std::size_t, 1> lengths = {local_.size()};
  ScatterTransferOperation operation =
      ours_.submitScatter({{.opcode = TransferRequest::READ,
                            .remote_segment = peer_.getLocalIpAndPort(),
                            .remote_base_offset = reinterpret_cast<std::uint64_t>(remote_.data()),
                            .remote_size = remote_.size(),
                            .local_buffer = local_.data(),
                            .local_capacity = local_.size(),
                            .local_offsets = offsets,
                            .remote_offsets = offsets,
                            .lengths = lengths,
                            .on_fragment_complete = {}}});
  const Status early = operation.waitFor(std::chrono::nanoseconds(0));
  EXPECT_TRUE(early.ok() || early.code() == Status::Code::kSocket) << early.ToString();
  EXPECT_TRUE(operation.waitFor(std::chrono::nanoseconds::max()).ok());
  EXPECT_TRUE(operation.wait().ok()) << "asked again";
  EXPECT_EQ(local_.back(), 'r');
  EXPECT_TRUE(ours_.transferScatter({}).ok());
}

TEST_F(ClassicFace, OffersNothingOfAbsentHardware) {
  EXPECT_EQ(ours_.getTransport("rdma"), nullptr);
  EXPECT_EQ(ours_.getOrCreateP2pTransport(2), nullptr);
  EXPECT_EQ(ours_.getOrCreateRdmaTransport(), nullptr);
  EXPECT_EQ(ours_.getOrCreateNcclTransport(), nullptr);
  EXPECT_TRUE(ours_.getLocalTopology()->getHcaList().empty());
  std::vector<NicLoadStats> stats(1);
  EXPECT_TRUE(ours_.getNicLoadStats(stats).ok());
  EXPECT_TRUE(stats.empty());
  EXPECT_EQ(ours_.showLinks(true), R"({"local_nics":[],"topology":{}})");
  EXPECT_NE(ours_.showLinks().find("Topology (NIC Selection)"), std::string::npos);
  EXPECT_EQ(ours_.uninstallTransport("tcp"), 0);
  EXPECT_EQ(ours_.getBaseAddr(), nullptr);
}

TEST_F(ClassicFace, UnregistersAfterItsSegmentWasRemoved) {
  EXPECT_EQ(ours_.removeLocalSegment("of-somebody-else"), 0);
  EXPECT_EQ(ours_.closeSegment(segment_), 0);
  EXPECT_EQ(ours_.removeLocalSegment(ours_.getLocalIpAndPort()), 0);
  EXPECT_EQ(ours_.unregisterLocalMemory(local_.data()), 0);
  EXPECT_EQ(ours_.openSegment(peer_.getLocalIpAndPort()), UINT64_MAX);
  EXPECT_EQ(ours_.freeEngine(), 0);
  EXPECT_EQ(ours_.freeEngine(), 0);
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
