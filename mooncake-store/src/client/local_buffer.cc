#include "mooncake-store/src/client/local_buffer.h"

#include <algorithm>
#include <utility>

#include "mooncake-common/src/base/result.h"

namespace mooncake::store {
namespace {

std::uint64_t RoundUp(std::uint64_t bytes) {
  return (bytes + LocalBuffer::kAlignment - 1) / LocalBuffer::kAlignment * LocalBuffer::kAlignment;
}

}  // namespace

LocalBuffer::LocalBuffer(std::span<std::byte> memory, std::shared_ptr<const void> hold)
    : memory_(memory), hold_(std::move(hold)) {
  if (!memory.empty()) {
    // The last granule may be short: Carve() looks at the bytes that are asked for too.
    free_.emplace(0, RoundUp(memory.size()));
  }
}

std::uint64_t LocalBuffer::used_bytes() const {
  const MutexLock lock(mutex_);
  return std::min<std::uint64_t>(used_bytes_, memory_.size());
}

bool LocalBuffer::Contains(const std::byte* address, std::uint64_t length_bytes) const {
  // Compared as numbers: the address may come from anywhere.
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= begin && at - begin <= memory_.size() &&
         length_bytes <= memory_.size() - (at - begin);
}

std::optional<std::span<std::byte>> LocalBuffer::TryTake(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  while (!queue_.empty() && !waiters_.contains(queue_.front())) {
    queue_.pop_front();
  }
  if (!queue_.empty()) {
    return std::nullopt;
  }
  const auto offset = Carve(bytes);
  return offset ? std::optional(At(*offset, bytes)) : std::nullopt;
}

std::optional<LocalBuffer::Ticket> LocalBuffer::Queue(std::uint64_t bytes, Instant deadline) {
  if (bytes == 0 || bytes > memory_.size()) {
    return std::nullopt;
  }
  const MutexLock lock(mutex_);
  const Ticket ticket = next_ticket_++;
  waiters_.emplace(ticket, Waiter{.bytes = bytes, .deadline = deadline, .offset = {}});
  queue_.push_back(ticket);
  Grant();
  return ticket;
}

LocalBuffer::Answer LocalBuffer::Poll(Ticket ticket, Instant now) {
  const MutexLock lock(mutex_);
  const auto found = waiters_.find(ticket);
  if (found == waiters_.end()) {
    return {.state = WaitState::kExpired, .range = {}};
  }
  const Waiter waiter = found->second;
  if (waiter.offset) {
    waiters_.erase(found);
    return {.state = WaitState::kGranted, .range = At(*waiter.offset, waiter.bytes)};
  }
  if (now < waiter.deadline) {
    return {.state = WaitState::kWaiting, .range = {}};
  }
  waiters_.erase(found);
  Grant();  // It may have been the one that was too large.
  return {.state = WaitState::kExpired, .range = {}};
}

void LocalBuffer::Abandon(Ticket ticket) {
  const MutexLock lock(mutex_);
  const auto found = waiters_.find(ticket);
  if (found == waiters_.end()) {
    return;
  }
  if (found->second.offset) {
    GiveBack(*found->second.offset);
  }
  waiters_.erase(found);
  Grant();
}

std::size_t LocalBuffer::Release(std::span<std::byte> range) {
  const MutexLock lock(mutex_);
  GiveBack(static_cast<std::uint64_t>(range.data() - memory_.data()));
  return Grant();
}

std::optional<std::uint64_t> LocalBuffer::Carve(std::uint64_t bytes) {
  if (bytes == 0 || bytes > memory_.size()) {
    return std::nullopt;
  }
  const std::uint64_t rounded = RoundUp(bytes);
  // First fit: the ranges in use are as many as there are calls under way, a few dozen.
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, length] = *range;
    if (length < rounded || bytes > memory_.size() - offset) {
      continue;
    }
    free_.erase(range);
    if (length > rounded) {
      free_.emplace(offset + rounded, length - rounded);
    }
    taken_.emplace(offset, rounded);
    used_bytes_ += rounded;
    return offset;
  }
  return std::nullopt;
}

void LocalBuffer::GiveBack(std::uint64_t offset) {
  const auto found = taken_.find(offset);
  MC_CHECK(found != taken_.end());
  std::uint64_t begin = offset;
  std::uint64_t length = found->second;
  used_bytes_ -= length;
  taken_.erase(found);
  auto after = free_.lower_bound(begin);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      length += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end() && begin + length == after->first) {
    length += after->second;
    free_.erase(after);
  }
  free_.emplace(begin, length);
}

std::size_t LocalBuffer::Grant() {
  std::size_t granted = 0;
  while (!queue_.empty()) {
    const auto waiter = waiters_.find(queue_.front());
    if (waiter != waiters_.end()) {
      const auto offset = Carve(waiter->second.bytes);
      if (!offset) {
        break;
      }
      waiter->second.offset = offset;
      ++granted;
    }
    queue_.pop_front();
  }
  return granted;
}

}  // namespace mooncake::store
