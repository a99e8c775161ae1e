// A directory in memory: what is published there is found there, and it can be told to fail, or to
// be silent about one segment.
//
// Thread-safety: all methods, from any thread.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/test_support/wait_until.h"
#include "mooncake-transfer-engine/src/engine/segment_directory.h"

namespace mooncake::transfer {

class FakeDirectory final : public SegmentDirectory {
 public:
  Result<std::shared_ptr<const SegmentDescriptor>> Fetch(const std::string& name) override {
    const MutexLock lock(mutex_);
    ++fetches_;
    ++waiting_;
    const Instant limit = HangDeadline();
    while (name == silent_ && !interrupted_ && changed_.WaitUntil(mutex_, limit)) {
    }
    --waiting_;
    if (interrupted_ && name == silent_) {
      return Fail(ErrorCode::kCancelled, "the fake directory was interrupted");
    }
    const auto it = segments_.find(name);
    if (down_) {
      return Fail(ErrorCode::kUnavailable, "the fake directory is down on purpose");
    }
    if (it == segments_.end()) {
      return Fail(ErrorCode::kNotFound, fmt::format("segment {} is not published", name));
    }
    return std::make_shared<const SegmentDescriptor>(it->second);
  }

  void Interrupt() override {
    const MutexLock lock(mutex_);
    interrupted_ = true;
    changed_.NotifyAll();
  }

  void Offer(std::shared_ptr<const SegmentDescriptor> own) override {
    const MutexLock lock(mutex_);
    offered_ = std::move(own);
  }

  Result<void> Publish(const SegmentDescriptor& own) override {
    const MutexLock lock(mutex_);
    if (down_) {
      return Fail(ErrorCode::kUnavailable, "the fake directory is down on purpose");
    }
    ++publishes_;
    segments_[own.name] = own;
    return {};
  }

  Result<void> Withdraw(const std::string& name) override {
    const MutexLock lock(mutex_);
    ++waiting_;
    const Instant limit = HangDeadline();
    while (name == silent_ && changed_.WaitUntil(mutex_, limit)) {
    }
    --waiting_;
    segments_.erase(name);
    return {};
  }

  Result<void> Remove(const std::string& name) override { return Withdraw(name); }

  Result<void> SendNotify(const std::string& name, const Notification& notify) override {
    const MutexLock lock(mutex_);
    sent_.emplace_back(name, notify);
    return {};
  }

  std::vector<Notification> TakeNotifies() override {
    const MutexLock lock(mutex_);
    return std::exchange(received_, {});
  }

  Result<void> Probe(const std::string& name) override {
    const MutexLock lock(mutex_);
    if (!segments_.contains(name)) {
      return Fail(ErrorCode::kUnavailable, fmt::format("segment {} does not answer", name));
    }
    return {};
  }

  // ---- For tests ----

  void SetDown(bool down) {
    const MutexLock lock(mutex_);
    down_ = down;
  }
  // Whoever asks for this segment or withdraws it waits until another one is named; "" = for none.
  void SetSilent(std::string name) {
    const MutexLock lock(mutex_);
    silent_ = std::move(name);
    changed_.NotifyAll();
  }
  [[nodiscard]] bool interrupted() {
    const MutexLock lock(mutex_);
    return interrupted_;
  }
  // So many wait for a silent segment.
  [[nodiscard]] int waiting() {
    const MutexLock lock(mutex_);
    return waiting_;
  }
  void Deliver(Notification notify) {
    const MutexLock lock(mutex_);
    received_.push_back(std::move(notify));
  }
  [[nodiscard]] int fetches() {
    const MutexLock lock(mutex_);
    return fetches_;
  }
  [[nodiscard]] int publishes() {
    const MutexLock lock(mutex_);
    return publishes_;
  }
  [[nodiscard]] std::vector<std::pair<std::string, Notification>> sent() {
    const MutexLock lock(mutex_);
    return sent_;
  }
  [[nodiscard]] std::shared_ptr<const SegmentDescriptor> offered() {
    const MutexLock lock(mutex_);
    return offered_;
  }

 private:
  Mutex mutex_;
  std::map<std::string, SegmentDescriptor> segments_ MC_GUARDED_BY(mutex_);
  std::shared_ptr<const SegmentDescriptor> offered_ MC_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, Notification>> sent_ MC_GUARDED_BY(mutex_);
  std::vector<Notification> received_ MC_GUARDED_BY(mutex_);
  CondVar changed_;
  std::string silent_ MC_GUARDED_BY(mutex_);
  int waiting_ MC_GUARDED_BY(mutex_) = 0;
  bool interrupted_ MC_GUARDED_BY(mutex_) = false;
  bool down_ MC_GUARDED_BY(mutex_) = false;
  int fetches_ MC_GUARDED_BY(mutex_) = 0;
  int publishes_ MC_GUARDED_BY(mutex_) = 0;
};

}  // namespace mooncake::transfer
