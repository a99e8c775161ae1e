#include "mooncake-transfer-engine/src/transports/local/copy_queue.h"

#include <algorithm>
#include <utility>

namespace mooncake::transfer {

void CopyQueue::Push(std::span<Slice* const> slices) {
  for (Slice* slice : slices) {
    slice->next = nullptr;
    slice->scratch = 0;
    if (tail_ == nullptr) {
      head_ = slice;
    } else {
      tail_->next = slice;
    }
    tail_ = slice;
  }
}

void CopyQueue::Take(Claim& claim) {
  MC_CHECK(claim.empty());
  std::uint64_t room_bytes = chunk_bytes_;
  while (head_ != nullptr && room_bytes > 0 && claim.count_ < Claim::kMaxPieces) {
    Slice* const slice = head_;
    const std::uint64_t left = slice->length_bytes - head_claimed_bytes_;
    const std::uint64_t taken = std::min(left, room_bytes);
    claim.pieces_[claim.count_++] = {
        .slice = slice, .offset_bytes = head_claimed_bytes_, .length_bytes = taken};
    room_bytes -= taken;
    if (taken == left) {
      PopFront();
    } else {
      head_claimed_bytes_ += taken;
    }
  }
  claims_ += claim.empty() ? 0 : 1;
}

void CopyQueue::Finish(const Claim& claim, std::span<const PieceFailure> failures,
                       EndedSlices& ended) {
  MC_CHECK(claims_ > 0);
  --claims_;
  for (std::size_t i = 0; i < claim.count_; ++i) {
    const Piece& piece = claim.pieces_[i];
    std::uint64_t bytes = piece.length_bytes;
    if (!failures.empty() && failures.front().index == i) {
      MarkFailed(piece.slice, failures.front().why);
      failures = failures.subspan(1);
      if (head_ == piece.slice) {
        bytes += piece.slice->length_bytes - head_claimed_bytes_;
        PopFront();
      }
    }
    Account(piece.slice, bytes, ended);
  }
}

void CopyQueue::Clear(const Error& why, EndedSlices& ended) {
  while (head_ != nullptr) {
    Slice* const slice = head_;
    const std::uint64_t unclaimed = slice->length_bytes - head_claimed_bytes_;
    PopFront();
    MarkFailed(slice, why);
    Account(slice, unclaimed, ended);
  }
}

void CopyQueue::PopFront() {
  head_ = head_->next;
  head_claimed_bytes_ = 0;
  if (head_ == nullptr) {
    tail_ = nullptr;
  }
}

void CopyQueue::Account(Slice* slice, std::uint64_t bytes, EndedSlices& ended) {
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

void CopyQueue::MarkFailed(Slice* slice, const Error& why) {
  if (std::ranges::find(failing_, slice, &EndedSlices::Failed::slice) == failing_.end()) {
    failing_.push_back({slice, why});
  }
}

}  // namespace mooncake::transfer
