// Which part of the queued slices is moved next, and which slices have ended: the bookkeeping that
// lets several threads or connections serve one queue at once, even several pieces of one long
// slice.
//
// Sans-IO: copies nothing, tells no sink.
// Thread-safety: none; the owner calls it under its lock and moves bytes outside.
// Ownership:     between Push() and the call that returns it as ended, a slice's `next` and
//                `scratch` belong to the queue, which needs no memory of its own for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-transfer-engine/src/transports/piece.h"
#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake::transfer {

// What is moved as one: pieces of one direction.
class Claim {
 public:
  static constexpr std::size_t kMaxPieces = 256;

  [[nodiscard]] std::span<const Piece> pieces() const { return std::span(pieces_).first(count_); }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const Piece& piece : pieces()) {
      sum += piece.length_bytes;
    }
    return sum;
  }
  // Of a claim that is not empty.
  [[nodiscard]] Opcode opcode() const { return pieces_[0].slice->opcode; }
  void Clear() {
    count_ = 0;
    suspected_at.reset();
  }

  // The owner's; kept when the claim is given back and taken again. When a connection ended that
  // may have ended because of it.
  std::optional<Instant> suspected_at;

 private:
  friend class SliceQueue;
  std::array<Piece, kMaxPieces> pieces_;
  std::size_t count_ = 0;
};

// Slices that came to their end.
struct EndedSlices {
  struct Failed {
    Slice* slice;
    Error why;
  };
  std::vector<Slice*> done;
  std::vector<Failed> failed;
};

class SliceQueue {
 public:
  struct Limits {
    std::uint64_t claim_bytes;  // No claim is longer,
    std::size_t claim_pieces;   // nor has more pieces; at most Claim::kMaxPieces.
  };
  explicit SliceQueue(Limits limits) : limits_(limits) {}

  void Push(std::span<Slice* const> slices);

  // Takes what was given back, else from the front until the claim is full or the direction
  // changes; `claim` must be empty. Leaves it empty when all is claimed.
  void Take(Claim& claim);

  // Gives a claim back, to be taken again as it is, but for `failures`, which count as in Finish().
  void Return(const Claim& claim, std::span<const PieceFailure> failures, EndedSlices& ended);

  // Counts the pieces of `claim` as copied but for `failures`, and appends to `ended` the slices
  // that this completes. Of a slice with a failed piece nothing more is claimed; it ends when its
  // other claims have.
  void Finish(const Claim& claim, std::span<const PieceFailure> failures, EndedSlices& ended);

  // Drops all that is not claimed: such slices end with `why`, those in part claimed once their
  // claims have finished.
  void Clear(const Error& why, EndedSlices& ended);

  [[nodiscard]] bool HasUnclaimed() const { return head_ != nullptr || !returned_.empty(); }
  [[nodiscard]] std::uint64_t unclaimed_bytes() const { return unclaimed_bytes_; }
  // Claimed and neither finished nor given back.
  [[nodiscard]] std::size_t claims() const { return claims_; }

 private:
  void PopFront();
  void Fail(const Piece& piece, const Error& why, EndedSlices& ended);
  void Account(Slice* slice, std::uint64_t bytes, EndedSlices& ended);
  void MarkFailed(Slice* slice, const Error& why);

  const Limits limits_;
  Slice* head_ = nullptr;  // Linked by `next`; `scratch` counts bytes that are copied or given up.
  Slice* tail_ = nullptr;
  std::uint64_t head_claimed_bytes_ = 0;  // Of the slice at the front.
  std::uint64_t unclaimed_bytes_ = 0;
  std::size_t claims_ = 0;
  std::deque<Claim> returned_;
  std::vector<EndedSlices::Failed> failing_;  // Failed, but not yet ended. Mostly empty.
};

}  // namespace mooncake::transfer
