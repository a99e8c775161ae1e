#include "mooncake-transfer-engine/src/transports/slice_ledger.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace mooncake::transfer {
namespace {

class RecordingSink final : public SliceSink {
 public:
  void OnDone(std::span<Slice* const> slices) noexcept override { done += slices.size(); }
  void OnFailed(std::span<Slice* const> slices, const Error& why) noexcept override {
    failed_runs.push_back(slices.size());
    last = why;
  }
  std::size_t done = 0;
  std::vector<std::size_t> failed_runs;
  Error last;
};

class SliceLedgerTest : public testing::Test {
 protected:
  SliceLedgerTest() {
    for (Slice& slice : slices_) {
      slice = {.length_bytes = 100, .sink = &sink_};
      pointers_.push_back(&slice);
    }
  }

  RecordingSink sink_;
  std::array<Slice, 5> slices_;
  std::vector<Slice*> pointers_;
  SliceLedger ledger_{
      {.queue = {.claim_bytes = 50, .claim_pieces = 4}, .max_unclaimed_bytes = 1000}};
};

// A connection that Abort() closes gives its claims back. Were they taken by another that is opened
// just then, Abort() would wait for a peer that may stand still for ever.
TEST_F(SliceLedgerTest, NothingIsTakenWhileAllIsAborted) {
  ASSERT_EQ(ledger_.Push(std::span(pointers_).first(1)), 1U);
  Claim held;
  ledger_.Take(held);
  ASSERT_FALSE(held.empty());
  ledger_.Abort({ErrorCode::kTimeout, "too late"}, [&] {
    ledger_.Return(held, {});
    EXPECT_FALSE(ledger_.HasUnclaimed()) << "nobody should open a connection for it";
    Claim other;
    ledger_.Take(other);
    EXPECT_TRUE(other.empty());
    if (!other.empty()) {
      ledger_.Finish(other, {});
    }
  });
  EXPECT_EQ(sink_.failed_runs, std::vector<std::size_t>{1});
  EXPECT_EQ(sink_.last.code, ErrorCode::kTimeout);
  ASSERT_EQ(ledger_.Push(std::span(pointers_).first(1)), 1U);
  EXPECT_TRUE(ledger_.HasUnclaimed());
  Claim afterwards;
  ledger_.Take(afterwards);
  EXPECT_FALSE(afterwards.empty());
}

TEST_F(SliceLedgerTest, WhatOneEventHasFailedIsToldAtOnce) {
  ASSERT_EQ(ledger_.Push(std::span(pointers_).first(3)), 3U);
  ledger_.FailUnclaimed({ErrorCode::kUnavailable, "refused"});
  ASSERT_EQ(ledger_.Push(std::span(pointers_).subspan(3)), 2U);
  ledger_.FailUnclaimed({ErrorCode::kUnavailable, "reset"});
  EXPECT_TRUE(ledger_.Report());
  EXPECT_EQ(sink_.failed_runs, (std::vector<std::size_t>{3, 2}));
  EXPECT_EQ(sink_.last.message, "reset");
  EXPECT_FALSE(ledger_.Report());
}

}  // namespace
}  // namespace mooncake::transfer
