// What an operation does about segments that it could not reach: avoids them for a while, and tells
// the master, with one call at a time. The answer says nothing; a report that is lost is not
// repeated.
//
// Thread-safety: none; part of an operation.
#pragma once

#include <cstdint>
#include <optional>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/operation.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

class SegmentBlame {
 public:
  // Of the call; no other one of the operation may have it.
  static constexpr std::uint32_t kTag = 1000;
  // For how long a segment that failed is avoided.
  static constexpr Duration kSuspicion = std::chrono::seconds(1);

  // Forgets what is not told yet. Not while a call is under way.
  void Clear() { untold_.segments.clear(); }
  void Blame(const PeerSegment& segment, Instant now);
  // The call to be made now, if there is something to tell.
  [[nodiscard]] std::optional<Action> Next(ClientCore& core, Instant now);
  [[nodiscard]] bool under_way() const { return under_way_; }
  // Whether `tag`, of a call that has ended, was its own.
  [[nodiscard]] bool Ended(std::uint32_t tag);

 private:
  bool under_way_ = false;
  ReportFailedReadsRequest untold_;
  ReportFailedReadsRequest told_;
  ReportFailedReadsReply reply_;
};

}  // namespace mooncake::store
