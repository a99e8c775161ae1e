#include "mooncake-transfer-engine/src/transports/local/local_channel.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "mooncake-transfer-engine/src/transports/slice_report.h"

namespace mooncake::transfer {
namespace {

// The channels whose sinks this thread is telling, outermost first.
thread_local std::vector<const LocalChannel*> reporting_here;

}  // namespace

// Counts this thread among those that tell sinks, from the moment at which its copy is over.
class LocalChannel::ReportScope {
 public:
  explicit ReportScope(LocalChannel& channel) : channel_(channel) {
    reporting_here.push_back(&channel);
  }
  ~ReportScope() {
    reporting_here.pop_back();
    const MutexLock lock(channel_.mutex_);
    --channel_.reporting_;
    if (channel_.aborting_ > 0) {
      channel_.idle_.NotifyAll();
    }
  }
  ReportScope(const ReportScope&) = delete;
  ReportScope& operator=(const ReportScope&) = delete;

 private:
  LocalChannel& channel_;
};

LocalChannel::LocalChannel(PeerProcess peer, const SegmentDescriptor& descriptor,
                           RegionTable& regions, const LocalChannelOptions& options)
    : options_(options),
      mover_(peer, descriptor, regions, options.use_shared_memory),
      queue_(options.chunk_bytes) {}

bool LocalChannel::IsShort(std::span<Slice* const> slices, std::uint64_t limit_bytes) {
  std::uint64_t total = 0;
  for (const Slice* slice : slices) {
    total += slice->length_bytes;
    if (slice->length_bytes > limit_bytes || total > limit_bytes) {
      return false;
    }
  }
  return true;
}

std::size_t LocalChannel::Post(std::span<Slice* const> slices) {
  if (slices.empty()) {
    return 0;
  }
  const bool at_once = IsShort(slices, options_.inline_bytes);
  {
    const MutexLock lock(mutex_);
    if (aborting_ > 0) {
      return 0;
    }
    if (at_once) {
      ++copying_now_;
    } else {
      queue_.Push(slices);
    }
  }
  if (at_once) {
    CopyNow(slices);
  }
  return slices.size();
}

void LocalChannel::CopyNow(std::span<Slice* const> slices) {
  std::vector<EndedSlices::Failed> failed;
  std::array<Piece, Claim::kMaxPieces> pieces;
  for (std::size_t begin = 0; begin < slices.size(); begin += pieces.size()) {
    const auto batch = slices.subspan(begin, std::min(pieces.size(), slices.size() - begin));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      pieces[i] = {.slice = batch[i], .offset_bytes = 0, .length_bytes = batch[i]->length_bytes};
    }
    for (PieceFailure& failure : mover_.Move(std::span(pieces).first(batch.size()))) {
      failed.push_back({batch[failure.index], std::move(failure.why)});
    }
  }
  {
    const MutexLock lock(mutex_);
    --copying_now_;
    ++reporting_;
  }
  const ReportScope scope(*this);
  auto next = failed.begin();
  std::size_t begin = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (next != failed.end() && next->slice == slices[i]) {
      ReportDone(slices.subspan(begin, i - begin));
      ReportFailed(slices.subspan(i, 1), next->why);
      begin = i + 1;
      ++next;
    }
  }
  ReportDone(slices.subspan(begin));
}

bool LocalChannel::Drive() {
  Claim claim;
  {
    const MutexLock lock(mutex_);
    queue_.Take(claim);
  }
  if (claim.empty()) {
    return false;
  }
  const std::vector<PieceFailure> failures = mover_.Move(claim.pieces());
  EndedSlices ended;
  {
    const MutexLock lock(mutex_);
    queue_.Finish(claim, failures, ended);
    ++reporting_;
  }
  const ReportScope scope(*this);
  ReportDone(ended.done);
  for (const auto& [slice, why] : ended.failed) {
    ReportFailed(std::span(&slice, 1), why);
  }
  return true;
}

bool LocalChannel::HasUnclaimed() {
  const MutexLock lock(mutex_);
  return queue_.HasUnclaimed();
}

bool LocalChannel::IsQuiet() const {
  return copying_now_ == 0 && queue_.claims() == 0 && reporting_ == reporting_and_aborting_;
}

void LocalChannel::Abort(const Error& why) {
  const auto own_reports = static_cast<std::size_t>(std::ranges::count(reporting_here, this));
  EndedSlices ended;
  {
    const MutexLock lock(mutex_);
    ++aborting_;
    reporting_and_aborting_ += own_reports;
    idle_.NotifyAll();  // Another Abort() may wait for just this.
    queue_.Clear(why, ended);
    ++reporting_;
  }
  {
    const ReportScope scope(*this);
    for (const auto& [slice, reason] : ended.failed) {
      ReportFailed(std::span(&slice, 1), reason);
    }
  }
  const MutexLock lock(mutex_);
  while (!IsQuiet()) {
    idle_.Wait(mutex_);
  }
  reporting_and_aborting_ -= own_reports;
  --aborting_;
}

}  // namespace mooncake::transfer
