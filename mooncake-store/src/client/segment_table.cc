#include "mooncake-store/src/client/segment_table.h"

namespace mooncake::store {

std::shared_ptr<const PeerSegment> PeerSegmentTable::Find(SegmentNumber number,
                                                          std::uint64_t incarnation) const {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(number);
  if (found == segments_.end() || found->second->identity.incarnation != incarnation) {
    return nullptr;
  }
  return found->second;
}

void PeerSegmentTable::Learn(const QueriedSegment& queried) {
  auto segment = std::make_shared<PeerSegment>();
  segment->identity = queried.identity;
  segment->info = queried.info;
  segment->owner = queried.owner;
  if (queried.owner == client_) {
    segment->nearness = Nearness::kOwn;
  } else if (!host_id_.empty() && queried.info.host_id == host_id_) {
    segment->nearness = Nearness::kSameHost;
  }
  const MutexLock lock(mutex_);
  auto& known = segments_[queried.identity.number];
  if (known != nullptr && known->identity == segment->identity && known->info == segment->info) {
    return;
  }
  known = std::move(segment);
}

void PeerSegmentTable::Clear() {
  const MutexLock lock(mutex_);
  segments_.clear();
}

}  // namespace mooncake::store
