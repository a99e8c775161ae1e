#include "mooncake-transfer-engine/src/engine/local_segment.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace mooncake::transfer {

LocalSegment::LocalSegment(SegmentDescriptor identity, RegionTable& regions,
                           SegmentDirectory& directory, SegmentTable& segments)
    : regions_(regions),
      directory_(directory),
      segments_(segments),
      identity_(std::move(identity)) {
  current_ = std::make_shared<const SegmentDescriptor>(identity_);
}

void LocalSegment::SetIdentity(SegmentDescriptor identity) {
  {
    const MutexLock lock(mutex_);
    identity_ = std::move(identity);
  }
  Rebuild();
}

void LocalSegment::Rebuild() {
  std::shared_ptr<const SegmentDescriptor> current;
  {
    const MutexLock lock(mutex_);
    auto next = std::make_shared<SegmentDescriptor>(identity_);
    for (const Region& region : regions_.Regions()) {
      if (region.remote_accessible) {
        next->buffers.push_back(BufferDescriptor{.name = identity_.name,
                                                 .address = region.address,
                                                 .length_bytes = region.length_bytes,
                                                 .shared = region.shared});
      }
    }
    current = std::move(next);
    current_ = current;
    ++version_;
    // Offered in the order of versions, so under the lock; neither call blocks.
    directory_.Offer(current);
    segments_.SetOwn(std::move(current));
  }
  segments_.Purge();
}

Result<void> LocalSegment::Register(std::span<const Region> regions) {
  MC_TRY(regions_.Add(regions));
  Rebuild();
  return {};
}

LocalSegment::Removal LocalSegment::Unregister(std::span<void* const> addresses,
                                               Duration patience) {
  Removal removal;
  for (void* const address : addresses) {
    auto removed = regions_.Remove(reinterpret_cast<std::uint64_t>(address), patience);
    removal.announced |= removed ? removed->remote_accessible
                                 : removed.error().code != ErrorCode::kAddressNotRegistered;
    if (!removed && removal.outcome) {
      removal.outcome = std::unexpected(std::move(removed).error());
    }
  }
  Rebuild();
  return removal;
}

Result<void> LocalSegment::Publish() {
  mutex_.lock();
  const std::uint64_t wanted = version_;
  Result<void> outcome;
  while (published_version_ < wanted) {
    if (publishing_) {
      published_.Wait(mutex_);
      continue;
    }
    publishing_ = true;
    const std::shared_ptr<const SegmentDescriptor> current = current_;
    const std::uint64_t version = version_;
    mutex_.unlock();
    outcome = directory_.Publish(*current);
    mutex_.lock();
    publishing_ = false;
    published_.NotifyAll();
    if (!outcome) {
      break;
    }
    published_version_ = version;
  }
  mutex_.unlock();
  return outcome;
}

Result<void> LocalSegment::Withdraw() { return directory_.Withdraw(Descriptor()->name); }

std::shared_ptr<const SegmentDescriptor> LocalSegment::Descriptor() const {
  const MutexLock lock(mutex_);
  return current_;
}

}  // namespace mooncake::transfer
