#include "mooncake-transfer-engine/src/metadata/memory_metadata.h"

#include <gtest/gtest.h>

namespace mooncake::transfer {
namespace {

class MemoryMetadataTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(a_.Start([] { return SegmentDescriptor{.name = "a", .tcp_data_port = 1}; }));
    ASSERT_TRUE(b_.Start([] { return SegmentDescriptor{.name = "b"}; }));
  }

  std::shared_ptr<MemoryDirectory> directory_ = std::make_shared<MemoryDirectory>();
  MemoryMetadata a_{directory_, "a"};
  MemoryMetadata b_{directory_, "b"};
};

TEST_F(MemoryMetadataTest, FindsWhatWasPublished) {
  EXPECT_EQ(b_.GetSegment("a").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(a_.PublishSegment({.name = "a", .tcp_data_port = 9}));
  EXPECT_EQ(b_.GetSegment("/a")->tcp_data_port, 9);
  ASSERT_TRUE(b_.RemoveSegment("a"));
  EXPECT_EQ(b_.GetSegment("a").error().code, ErrorCode::kNotFound);
}

TEST_F(MemoryMetadataTest, PublishesAgainWhatWasLost) {
  directory_->LoseDescriptors();
  ASSERT_TRUE(a_.Republish());
  EXPECT_EQ(b_.GetSegment("a")->tcp_data_port, 1);
}

TEST_F(MemoryMetadataTest, DeliversNotifications) {
  ASSERT_TRUE(b_.Notify("a", {.name = "n", .message = "m"}));
  EXPECT_EQ(a_.TakeNotifies(), (std::vector<Notification>{{.name = "n", .message = "m"}}));
  EXPECT_TRUE(a_.TakeNotifies().empty());
}

TEST_F(MemoryMetadataTest, LosesTouchWhenToldTo) {
  ASSERT_TRUE(a_.PublishSegment({.name = "a"}));
  directory_->SetReachable("a", false);
  EXPECT_EQ(b_.GetSegment("a").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(b_.Probe("a").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(b_.Notify("a", {}).error().code, ErrorCode::kUnavailable);
  directory_->SetReachable("a", true);
  EXPECT_TRUE(b_.Probe("a"));
}

TEST_F(MemoryMetadataTest, GivesANameToOneLivingOwner) {
  MemoryMetadata second(directory_, "a");
  EXPECT_EQ(second.Start([] { return SegmentDescriptor{}; }).error().code,
            ErrorCode::kAlreadyExists);
  EXPECT_TRUE(b_.Probe("a"));
  a_.Stop();
  a_.Stop();
  EXPECT_EQ(b_.Probe("a").error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(second.Start([] { return SegmentDescriptor{}; }));
}

}  // namespace
}  // namespace mooncake::transfer
