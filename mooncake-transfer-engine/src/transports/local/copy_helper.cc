#include "mooncake-transfer-engine/src/transports/local/copy_helper.h"

#include <algorithm>
#include <utility>

namespace mooncake::transfer {

Result<void> CopyHelper::Help(std::shared_ptr<LocalChannel> channel) {
  const MutexLock lock(mutex_);
  if (stopped_ || IsWaiting(channel)) {
    return {};
  }
  if (!started_) {
    MC_TRY_ASSIGN(thread_, Thread::Start("mc-local-copy", [this] { Run(); }));
    started_ = true;
  }
  channels_.push_back(std::move(channel));
  wake_.NotifyOne();
  return {};
}

void CopyHelper::Stop() {
  Thread ending;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    channels_.clear();
    ending = std::move(thread_);
    wake_.NotifyOne();
  }
  ending.Join();
}

bool CopyHelper::IsWaiting(const std::shared_ptr<LocalChannel>& channel) const {
  return std::ranges::find(channels_, channel) != channels_.end();
}

void CopyHelper::Run() {
  for (;;) {
    std::shared_ptr<LocalChannel> channel;
    {
      const MutexLock lock(mutex_);
      while (!stopped_ && channels_.empty()) {
        wake_.Wait(mutex_);
      }
      if (stopped_) {
        return;
      }
      channel = std::move(channels_.front());
      channels_.pop_front();
    }
    if (channel->Drive()) {
      const MutexLock lock(mutex_);
      if (!stopped_ && !IsWaiting(channel)) {
        channels_.push_back(std::move(channel));
      }
    }
  }
}

}  // namespace mooncake::transfer
