#include "mooncake-store/src/server/metadata_cleanup.h"

#include <fmt/format.h>

namespace mooncake::store {

void MetadataCleanup::OnSegment(const SegmentEvent& event) {
  const MutexLock lock(mutex_);
  const SegmentNumber number = event.identity.number;
  switch (event.kind) {
    case SegmentEventKind::kMounted:
      names_[number] = event.info.name;
      break;
    case SegmentEventKind::kGone:
      names_.erase(number);
      break;
    case SegmentEventKind::kStatus:
      // Who unmounts a segment of its own may still serve others.
      if (event.status == SegmentStatus::kUnmounting && !event.owner_left) {
        const std::string& name = names_[number];
        const std::string prefix =
            cluster_id_.empty() ? "mooncake/" : fmt::format("mooncake/{}/", cluster_id_);
        (void)metadata_.Erase(
            fmt::format("{}{}{}", prefix, name.contains('/') ? "" : "ram/", name));
        (void)metadata_.Erase(fmt::format("{}rpc_meta/{}", prefix, name));
      }
      break;
  }
}

}  // namespace mooncake::store
