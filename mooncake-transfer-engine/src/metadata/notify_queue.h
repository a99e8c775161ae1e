// Notifications that wait until the application takes them.
//
// Thread-safety: any thread.
// Bounds:        65536 notifications, 16 MiB of text; what comes beyond is refused, and its sender
//                told so.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/metadata/metadata.h"

namespace mooncake::transfer {

class NotifyQueue {
 public:
  static constexpr std::size_t kMaxCount = 65536;
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  // False: full, not taken.
  [[nodiscard]] bool Push(Notification notification) MC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const std::size_t bytes = notification.name.size() + notification.message.size();
    if (queue_.size() >= kMaxCount || bytes > kMaxBytes - bytes_) {
      return false;
    }
    bytes_ += bytes;
    queue_.push_back(std::move(notification));
    return true;
  }

  // All of them, oldest first.
  [[nodiscard]] std::vector<Notification> Take() MC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    bytes_ = 0;
    return std::exchange(queue_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Notification> queue_ MC_GUARDED_BY(mutex_);
  std::size_t bytes_ MC_GUARDED_BY(mutex_) = 0;  // Never above kMaxBytes.
};

}  // namespace mooncake::transfer
