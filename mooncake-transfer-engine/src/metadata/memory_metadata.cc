#include "mooncake-transfer-engine/src/metadata/memory_metadata.h"

#include <fmt/format.h>

#include "mooncake-transfer-engine/src/metadata/server_name.h"

namespace mooncake::transfer {

void MemoryDirectory::SetReachable(const std::string& name, bool reachable) {
  const MutexLock lock(mutex_);
  if (reachable) {
    unreachable_.erase(name);
  } else {
    unreachable_.insert(name);
  }
}

void MemoryDirectory::LoseDescriptors() {
  const MutexLock lock(mutex_);
  descriptors_.clear();
}

MemoryMetadata::~MemoryMetadata() { Stop(); }

Result<void> MemoryMetadata::Start(DescribeLocal describe) {
  const MutexLock lock(directory_->mutex_);
  if (!directory_->living_.emplace(name_, queue_).second) {
    return Fail(ErrorCode::kAlreadyExists,
                fmt::format("start segment {}: another one lives under this name", name_));
  }
  started_ = true;
  describe_ = std::move(describe);
  return {};
}

void MemoryMetadata::Stop() {
  if (std::exchange(started_, false)) {
    const MutexLock lock(directory_->mutex_);
    directory_->living_.erase(name_);
    directory_->descriptors_.erase(name_);
  }
}

Result<void> MemoryMetadata::PublishSegment(const SegmentDescriptor& descriptor) {
  const MutexLock lock(directory_->mutex_);
  directory_->descriptors_.insert_or_assign(name_, descriptor);
  return {};
}

Result<SegmentDescriptor> MemoryMetadata::GetSegment(std::string_view name) {
  name = WithoutLeadingSlash(name);
  const MutexLock lock(directory_->mutex_);
  if (directory_->unreachable_.contains(name)) {
    return Fail(ErrorCode::kUnavailable, fmt::format("find segment {}: no answer", name));
  }
  const auto found = directory_->descriptors_.find(name);
  if (found == directory_->descriptors_.end()) {
    return Fail(ErrorCode::kNotFound, fmt::format("find segment {}: nobody published it", name));
  }
  return found->second;
}

Result<void> MemoryMetadata::RemoveSegment(std::string_view name) {
  const MutexLock lock(directory_->mutex_);
  const auto found = directory_->descriptors_.find(WithoutLeadingSlash(name));
  if (found != directory_->descriptors_.end()) {
    directory_->descriptors_.erase(found);
  }
  return {};
}

Result<void> MemoryMetadata::Republish() { return PublishSegment(describe_()); }

Result<std::shared_ptr<NotifyQueue>> MemoryMetadata::FindLiving(std::string_view name) {
  name = WithoutLeadingSlash(name);
  const MutexLock lock(directory_->mutex_);
  const auto found = directory_->living_.find(name);
  if (found == directory_->living_.end() || directory_->unreachable_.contains(name)) {
    return Fail(ErrorCode::kUnavailable, fmt::format("ask segment {}: no answer", name));
  }
  return found->second;
}

Result<void> MemoryMetadata::Probe(std::string_view name) {
  MC_TRY(FindLiving(name));
  return {};
}

Result<void> MemoryMetadata::Notify(std::string_view name, const Notification& notification) {
  MC_TRY_ASSIGN(const std::shared_ptr<NotifyQueue> queue, FindLiving(name));
  if (!queue->Push(notification)) {
    return Fail(ErrorCode::kExhausted, fmt::format("notify segment {}: its queue is full", name));
  }
  return {};
}

}  // namespace mooncake::transfer
