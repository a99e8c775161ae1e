// Metadata within one process, for tests of what stands on it: engines that share a MemoryDirectory
// find each other by name. No socket, no thread. It fails the ways that real backends do.
//
// Thread-safety: any thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/metadata/metadata.h"
#include "mooncake-transfer-engine/src/metadata/notify_queue.h"

namespace mooncake::transfer {

// The store and the network in between.
class MemoryDirectory {
 public:
  // From now on, until `reachable` again, nobody gets an answer about or from `name`.
  void SetReachable(const std::string& name, bool reachable);

  // As if the store was restarted: descriptors are gone, processes live on.
  void LoseDescriptors();

 private:
  friend class MemoryMetadata;

  mutable Mutex mutex_;
  std::map<std::string, SegmentDescriptor, std::less<>> descriptors_ MC_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<NotifyQueue>, std::less<>> living_ MC_GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> unreachable_ MC_GUARDED_BY(mutex_);
};

class MemoryMetadata final : public Metadata {
 public:
  MemoryMetadata(std::shared_ptr<MemoryDirectory> directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}
  ~MemoryMetadata() override;

  [[nodiscard]] Result<void> Start(DescribeLocal describe) override;
  void Interrupt() override {}
  void Stop() override;
  [[nodiscard]] std::string LocalName() const override { return name_; }
  [[nodiscard]] std::string DataHost() const override { return "127.0.0.1"; }
  [[nodiscard]] std::uint16_t RpcPort() const override { return 0; }
  [[nodiscard]] Result<void> PublishSegment(const SegmentDescriptor& descriptor) override;
  [[nodiscard]] Result<SegmentDescriptor> GetSegment(std::string_view name) override;
  [[nodiscard]] Result<void> RemoveSegment(std::string_view name) override;
  [[nodiscard]] Result<void> Republish() override;
  [[nodiscard]] Result<void> Probe(std::string_view name) override;
  [[nodiscard]] Result<void> Notify(std::string_view name,
                                    const Notification& notification) override;
  [[nodiscard]] std::vector<Notification> TakeNotifies() override { return queue_->Take(); }

 private:
  [[nodiscard]] Result<std::shared_ptr<NotifyQueue>> FindLiving(std::string_view name);

  const std::shared_ptr<MemoryDirectory> directory_;
  const std::string name_;
  const std::shared_ptr<NotifyQueue> queue_ = std::make_shared<NotifyQueue>();
  bool started_ = false;
  DescribeLocal describe_;
};

}  // namespace mooncake::transfer
