// Which part of the queued slices is copied next, and which slices have ended: the bookkeeping that
// lets several threads copy one queue at once, even several pieces of one long slice.
//
// Sans-IO: copies nothing, tells no sink.
// Thread-safety: none; the owner calls it under its lock and copies outside.
// Ownership:     between Push() and the call that returns it as ended, a slice's `next` and
//                `scratch` belong to the queue, which needs no memory of its own for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mooncake-transfer-engine/src/transports/local/piece_mover.h"
#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake::transfer {

// What one thread copies before it looks up again.
class Claim {
 public:
  static constexpr std::size_t kMaxPieces = 256;

  [[nodiscard]] std::span<const Piece> pieces() const { return std::span(pieces_).first(count_); }
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  friend class CopyQueue;
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

class CopyQueue {
 public:
  // No claim is longer than `chunk_bytes`.
  explicit CopyQueue(std::uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  void Push(std::span<Slice* const> slices);

  // Takes from the front until the claim is full; `claim` must be empty. Leaves it empty when all
  // is claimed.
  void Take(Claim& claim);

  // Counts the pieces of `claim` as copied but for `failures`, and appends to `ended` the slices
  // that this completes. Of a slice with a failed piece nothing more is claimed; it ends when its
  // other claims have.
  void Finish(const Claim& claim, std::span<const PieceFailure> failures, EndedSlices& ended);

  // Drops all that is not claimed: such slices end with `why`, those in part claimed once their
  // claims have finished.
  void Clear(const Error& why, EndedSlices& ended);

  [[nodiscard]] bool HasUnclaimed() const { return head_ != nullptr; }
  // Claimed and not yet finished.
  [[nodiscard]] std::size_t claims() const { return claims_; }

 private:
  void PopFront();
  void Account(Slice* slice, std::uint64_t bytes, EndedSlices& ended);
  void MarkFailed(Slice* slice, const Error& why);

  const std::uint64_t chunk_bytes_;
  Slice* head_ = nullptr;  // Linked by `next`; `scratch` counts bytes that are copied or given up.
  Slice* tail_ = nullptr;
  std::uint64_t head_claimed_bytes_ = 0;  // Of the slice at the front.
  std::size_t claims_ = 0;
  std::vector<EndedSlices::Failed> failing_;  // Failed, but not yet ended. Mostly empty.
};

}  // namespace mooncake::transfer
