// The engine's directory on top of a metadata backend.
//
// Thread-safety: all methods, from any thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/engine/segment_directory.h"
#include "mooncake-transfer-engine/src/metadata/metadata.h"

namespace mooncake::transfer {

class MetadataDirectory final : public SegmentDirectory {
 public:
  // `metadata` is not started yet.
  explicit MetadataDirectory(std::unique_ptr<Metadata> metadata) : metadata_(std::move(metadata)) {}
  ~MetadataDirectory() override { metadata_->Stop(); }

  // From here on peers find the process, first with a descriptor that offers nothing.
  [[nodiscard]] Result<void> Start() {
    return metadata_->Start([this] {
      const MutexLock lock(mutex_);
      return offered_ != nullptr ? *offered_ : SegmentDescriptor{.name = metadata_->LocalName()};
    });
  }
  [[nodiscard]] const Metadata& metadata() const { return *metadata_; }

  Result<std::shared_ptr<const SegmentDescriptor>> Fetch(const std::string& name) override {
    MC_TRY_ASSIGN(SegmentDescriptor descriptor, metadata_->GetSegment(name));
    return std::make_shared<const SegmentDescriptor>(std::move(descriptor));
  }
  void Interrupt() override { metadata_->Interrupt(); }
  void Offer(std::shared_ptr<const SegmentDescriptor> own) override {
    const MutexLock lock(mutex_);
    offered_ = std::move(own);
  }
  Result<void> Publish(const SegmentDescriptor& own) override {
    return metadata_->PublishSegment(own);
  }
  Result<void> Withdraw(const std::string& /*name*/) override {
    metadata_->Stop();
    return {};
  }
  Result<void> Remove(const std::string& name) override { return metadata_->RemoveSegment(name); }
  Result<void> SendNotify(const std::string& name, const Notification& notify) override {
    return metadata_->Notify(name, notify);
  }
  std::vector<Notification> TakeNotifies() override { return metadata_->TakeNotifies(); }
  Result<void> Probe(const std::string& name) override { return metadata_->Probe(name); }

 private:
  const std::unique_ptr<Metadata> metadata_;
  Mutex mutex_;
  std::shared_ptr<const SegmentDescriptor> offered_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
