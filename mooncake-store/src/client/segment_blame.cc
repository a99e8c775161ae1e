#include "mooncake-store/src/client/segment_blame.h"

#include <algorithm>
#include <utility>

namespace mooncake::store {

namespace {

constexpr Duration kCallLimit = std::chrono::seconds(1);

}  // namespace

void SegmentBlame::Blame(const PeerSegment& segment, Instant now) {
  segment.Suspect(now + kSuspicion);
  if (std::ranges::find(untold_.segments, segment.identity) == untold_.segments.end()) {
    untold_.segments.push_back(segment.identity);
  }
}

std::optional<Action> SegmentBlame::Next(ClientCore& core, Instant now) {
  if (untold_.segments.empty() || under_way_) {
    return std::nullopt;
  }
  under_way_ = true;
  std::swap(told_.segments, untold_.segments);
  untold_.segments.clear();
  told_.caller = core.MakeCaller();
  return Action::Call(kTag, now + kCallLimit,
                      Exchange<ReportFailedReadsRequest, ReportFailedReadsReply>{&told_, &reply_});
}

bool SegmentBlame::Ended(std::uint32_t tag) {
  if (tag != kTag) {
    return false;
  }
  under_way_ = false;
  return true;
}

}  // namespace mooncake::store
