#include "mooncake-transfer-engine/src/transports/slice_queue.h"

#include <algorithm>
#include <utility>

namespace mooncake::transfer {

void SliceQueue::Push(std::span<Slice* const> slices) {
  for (Slice* slice : slices) {
    slice->next = nullptr;
    slice->scratch = 0;
    if (tail_ == nullptr) {
      head_ = slice;
    } else {
      tail_->next = slice;
    }
    tail_ = slice;
    unclaimed_bytes_ += slice->length_bytes;
  }
}

void SliceQueue::Take(Claim& claim) {
  MC_CHECK(claim.empty());
  if (!returned_.empty()) {
    claim = returned_.front();
    returned_.pop_front();
    for (const Piece& piece : claim.pieces()) {
      unclaimed_bytes_ -= piece.length_bytes;
    }
    ++claims_;
    return;
  }
  std::uint64_t room_bytes = limits_.claim_bytes;
  while (head_ != nullptr && room_bytes > 0 && claim.count_ < limits_.claim_pieces) {
    Slice* const slice = head_;
    if (!claim.empty() && slice->opcode != claim.opcode()) {
      break;
    }
    const std::uint64_t left = slice->length_bytes - head_claimed_bytes_;
    const std::uint64_t taken = std::min(left, room_bytes);
    claim.pieces_[claim.count_++] = {
        .slice = slice, .offset_bytes = head_claimed_bytes_, .length_bytes = taken};
    room_bytes -= taken;
    unclaimed_bytes_ -= taken;
    if (taken == left) {
      PopFront();
    } else {
      head_claimed_bytes_ += taken;
    }
  }
  claims_ += claim.empty() ? 0 : 1;
}

void SliceQueue::Finish(const Claim& claim, std::span<const PieceFailure> failures,
                        EndedSlices& ended) {
  MC_CHECK(claims_ > 0);
  --claims_;
  for (std::size_t i = 0; i < claim.count_; ++i) {
    const Piece& piece = claim.pieces_[i];
    if (!failures.empty() && failures.front().index == i) {
      Fail(piece, failures.front().why, ended);
      failures = failures.subspan(1);
    } else {
      Account(piece.slice, piece.length_bytes, ended);
    }
  }
}

void SliceQueue::Return(const Claim& claim, std::span<const PieceFailure> failures,
                        EndedSlices& ended) {
  MC_CHECK(claims_ > 0);
  --claims_;
  Claim kept;
  kept.suspected_at = claim.suspected_at;
  for (std::size_t i = 0; i < claim.count_; ++i) {
    const Piece& piece = claim.pieces_[i];
    if (!failures.empty() && failures.front().index == i) {
      Fail(piece, failures.front().why, ended);
      failures = failures.subspan(1);
    } else {
      kept.pieces_[kept.count_++] = piece;
      unclaimed_bytes_ += piece.length_bytes;
    }
  }
  if (!kept.empty()) {
    returned_.push_back(kept);
  }
}

void SliceQueue::Clear(const Error& why, EndedSlices& ended) {
  while (!returned_.empty()) {
    const Claim claim = returned_.front();
    returned_.pop_front();
    for (const Piece& piece : claim.pieces()) {
      unclaimed_bytes_ -= piece.length_bytes;
      Fail(piece, why, ended);
    }
  }
  while (head_ != nullptr) {
    Slice* const slice = head_;
    const std::uint64_t unclaimed = slice->length_bytes - head_claimed_bytes_;
    unclaimed_bytes_ -= unclaimed;
    PopFront();
    MarkFailed(slice, why);
    Account(slice, unclaimed, ended);
  }
}

void SliceQueue::Fail(const Piece& piece, const Error& why, EndedSlices& ended) {
  MarkFailed(piece.slice, why);
  std::uint64_t bytes = piece.length_bytes;
  if (head_ == piece.slice) {
    const std::uint64_t rest = piece.slice->length_bytes - head_claimed_bytes_;
    bytes += rest;
    unclaimed_bytes_ -= rest;
    PopFront();
  }
  Account(piece.slice, bytes, ended);
}

void SliceQueue::PopFront() {
  head_ = head_->next;
  head_claimed_bytes_ = 0;
  if (head_ == nullptr) {
    tail_ = nullptr;
  }
}

void SliceQueue::Account(Slice* slice, std::uint64_t bytes, EndedSlices& ended) {
  slice->scratch += bytes;
  if (slice->scratch < slice->length_bytes) {
    return;
  }
  const auto failed = std::ranges::find(failing_, slice, &EndedSlices::Failed::slice);
  if (failed == failing_.end()) {
    ended.done.push_back(slice);
  } else {
    ended.failed.push_back(std::move(*failed));
    failing_.erase(failed);
  }
}

void SliceQueue::MarkFailed(Slice* slice, const Error& why) {
  if (std::ranges::find(failing_, slice, &EndedSlices::Failed::slice) == failing_.end()) {
    failing_.push_back({slice, why});
  }
}

}  // namespace mooncake::transfer
