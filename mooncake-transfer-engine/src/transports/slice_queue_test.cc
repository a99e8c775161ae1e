#include "mooncake-transfer-engine/src/transports/slice_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <vector>

namespace mooncake::transfer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Error kWhyStop{ErrorCode::kCancelled, "stop"};

struct Made {
  explicit Made(std::vector<std::uint64_t> lengths) : slices(lengths.size()) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      slices[i].length_bytes = lengths[i];
      pointers.push_back(&slices[i]);
    }
  }
  std::vector<Slice> slices;
  std::vector<Slice*> pointers;
};

std::vector<std::uint64_t> Lengths(const Claim& claim) {
  std::vector<std::uint64_t> lengths;
  for (const Piece& piece : claim.pieces()) {
    lengths.push_back(piece.length_bytes);
  }
  return lengths;
}

TEST(SliceQueue, FillsAClaimWithWholeSlicesAndCutsTheLast) {
  Made made({4, 4, 10});
  SliceQueue queue({.claim_bytes = 10, .claim_pieces = 256});
  queue.Push(made.pointers);
  Claim first;
  queue.Take(first);
  EXPECT_THAT(Lengths(first), ElementsAre(4, 4, 2));
  Claim second;
  queue.Take(second);
  EXPECT_THAT(Lengths(second), ElementsAre(8));
  EXPECT_EQ(second.pieces()[0].offset_bytes, 2U);
  Claim third;
  queue.Take(third);
  EXPECT_TRUE(third.empty());
  EXPECT_EQ(queue.claims(), 2U);

  EndedSlices ended;
  queue.Finish(second, {}, ended);
  EXPECT_THAT(ended.done, IsEmpty()) << "its first bytes are still being copied";
  queue.Finish(first, {}, ended);
  EXPECT_THAT(ended.done, ElementsAre(made.pointers[0], made.pointers[1], made.pointers[2]));
}

TEST(SliceQueue, AFailedPieceStopsTheRestOfItsSliceOnly) {
  Made made({30, 5});
  SliceQueue queue({.claim_bytes = 10, .claim_pieces = 256});
  queue.Push(made.pointers);
  Claim first;
  queue.Take(first);
  Claim second;
  queue.Take(second);
  EndedSlices ended;
  queue.Finish(first, std::vector<PieceFailure>{{0, kWhyStop}}, ended);
  EXPECT_THAT(ended.failed, IsEmpty()) << "another thread still copies";
  queue.Finish(second, {}, ended);
  ASSERT_EQ(ended.failed.size(), 1U);
  EXPECT_EQ(ended.failed[0].slice, made.pointers[0]);
  EXPECT_EQ(ended.failed[0].why.message, "stop");
  Claim third;
  queue.Take(third);
  EXPECT_THAT(Lengths(third), ElementsAre(5));
  queue.Finish(third, {}, ended);
  EXPECT_THAT(ended.done, ElementsAre(made.pointers[1]));
}

// Goal: whatever the order of claims and failures, each slice ends exactly once, as failed if and
// only if a piece of it failed or was dropped, and no byte is claimed twice.
TEST(SliceQueue, EndsEachSliceOnceForAnySeed) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::uint32_t bound) { return random() % bound; };
    std::vector<std::uint64_t> lengths(1 + below(60));
    std::ranges::generate(lengths, [&] { return 1 + below(below(4) == 0 ? 400 : 20); });
    Made made(lengths);
    for (Slice& slice : made.slices) {
      slice.opcode = below(3) == 0 ? Opcode::kWrite : Opcode::kRead;
    }
    const std::uint32_t fail_percent = below(3) == 0 ? below(40) : 0;
    SliceQueue queue({.claim_bytes = 1 + below(50), .claim_pieces = 1 + below(8)});
    std::map<Slice*, std::uint64_t> claimed_to;
    std::map<Slice*, bool> failed;
    std::map<Slice*, int> returned;  // Pieces that were given back and wait.
    std::map<Slice*, int> ends;
    std::deque<Claim> open;
    std::size_t pushed = 0;
    const auto count = [&](const EndedSlices& ended) {
      for (Slice* slice : ended.done) {
        EXPECT_FALSE(failed[slice]);
        EXPECT_EQ(claimed_to[slice], slice->length_bytes);
        ++ends[slice];
      }
      for (const auto& entry : ended.failed) {
        EXPECT_TRUE(failed[entry.slice]);
        ++ends[entry.slice];
      }
    };
    while (pushed < made.pointers.size() || queue.HasUnclaimed() || !open.empty()) {
      EndedSlices ended;
      switch (below(8)) {
        case 0:
        case 1: {
          const std::size_t more = std::min<std::size_t>(made.pointers.size() - pushed, below(9));
          queue.Push(std::span(made.pointers).subspan(pushed, more));
          pushed += more;
          break;
        }
        case 2:
        case 3:
        case 4: {
          Claim claim;
          queue.Take(claim);
          for (const Piece& piece : claim.pieces()) {
            EXPECT_EQ(piece.slice->opcode, claim.opcode());
            if (!claim.suspected_at) {
              EXPECT_EQ(piece.offset_bytes, claimed_to[piece.slice]);
              claimed_to[piece.slice] += piece.length_bytes;
            } else {
              --returned[piece.slice];
            }
          }
          if (!claim.empty()) {
            open.push_back(claim);
          }
          break;
        }
        case 5:
          if (below(20) == 0) {
            for (std::size_t i = 0; i < pushed; ++i) {
              Slice* const slice = made.pointers[i];
              if (ends[slice] == 0 &&
                  (claimed_to[slice] < slice->length_bytes || returned[slice] > 0)) {
                failed[slice] = true;
              }
            }
            queue.Clear(kWhyStop, ended);
            returned.clear();
          }
          break;
        default:
          if (!open.empty()) {
            const std::size_t at = below(static_cast<std::uint32_t>(open.size()));
            std::vector<PieceFailure> failures;
            for (std::size_t i = 0; i < open[at].pieces().size(); ++i) {
              if (below(100) < fail_percent) {
                failures.push_back({i, kWhyStop});
                failed[open[at].pieces()[i].slice] = true;
              }
            }
            if (below(4) == 0) {
              open[at].suspected_at = Instant();
              for (const Piece& piece : open[at].pieces()) {
                ++returned[piece.slice];
              }
              for (const PieceFailure& failure : failures) {
                --returned[open[at].pieces()[failure.index].slice];
              }
              queue.Return(open[at], failures, ended);
            } else {
              queue.Finish(open[at], failures, ended);
            }
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
          }
      }
      count(ended);
    }
    for (Slice* slice : made.pointers) {
      EXPECT_EQ(ends[slice], 1);
    }
    EXPECT_EQ(queue.claims(), 0U);
    EXPECT_EQ(queue.unclaimed_bytes(), 0U);
  }
}

}  // namespace
}  // namespace mooncake::transfer
