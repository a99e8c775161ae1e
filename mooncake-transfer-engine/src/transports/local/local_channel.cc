#include "mooncake-transfer-engine/src/transports/local/local_channel.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace mooncake::transfer {
namespace {

bool IsShort(std::span<Slice* const> slices, std::uint64_t limit_bytes) {
  std::uint64_t total = 0;
  for (const Slice* slice : slices) {
    total += slice->length_bytes;
    if (slice->length_bytes > limit_bytes || total > limit_bytes) {
      return false;
    }
  }
  return true;
}

}  // namespace

LocalChannel::LocalChannel(PeerProcess peer, const SegmentDescriptor& descriptor,
                           RegionTable& regions, const LocalChannelOptions& options)
    : options_(options),
      mover_(peer, descriptor, regions, options.use_shared_memory),
      ledger_({.queue = {.claim_bytes = options.chunk_bytes, .claim_pieces = Claim::kMaxPieces},
               .max_unclaimed_bytes = std::numeric_limits<std::uint64_t>::max()}) {}

std::size_t LocalChannel::Post(std::span<Slice* const> slices) {
  if (!IsShort(slices, options_.inline_bytes)) {
    return ledger_.Push(slices);
  }
  if (slices.empty() || !ledger_.BeginNow()) {
    return 0;
  }
  CopyNow(slices);
  return slices.size();
}

void LocalChannel::CopyNow(std::span<Slice* const> slices) {
  std::vector<PieceFailure> failures;
  std::array<Piece, Claim::kMaxPieces> pieces;
  for (std::size_t begin = 0; begin < slices.size(); begin += pieces.size()) {
    const auto batch = slices.subspan(begin, std::min(pieces.size(), slices.size() - begin));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      pieces[i] = {.slice = batch[i], .offset_bytes = 0, .length_bytes = batch[i]->length_bytes};
    }
    for (PieceFailure& failure : mover_.Move(std::span(pieces).first(batch.size()))) {
      failures.push_back({begin + failure.index, std::move(failure.why)});
    }
  }
  ledger_.EndNow(slices, failures);
}

bool LocalChannel::Drive() {
  Claim claim;
  if (HasUnclaimed()) {
    ledger_.Take(claim);
  }
  if (claim.empty()) {
    return false;
  }
  const std::vector<PieceFailure> failures = mover_.Move(claim.pieces());
  ledger_.CountMoved(claim.bytes());
  ledger_.Finish(claim, failures);
  ledger_.Report();
  return true;
}

}  // namespace mooncake::transfer
