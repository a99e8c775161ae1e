#include "mooncake-store/src/client/local_buffer.h"

#include <iterator>
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
    // The last granule may be short: TryTake() looks at the bytes that are asked for too.
    free_.emplace(0, RoundUp(memory.size()));
  }
}

bool LocalBuffer::Contains(const std::byte* address, std::uint64_t length_bytes) const {
  // Compared as numbers: the address may come from anywhere.
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= begin && at - begin <= memory_.size() &&
         length_bytes <= memory_.size() - (at - begin);
}

std::optional<std::span<std::byte>> LocalBuffer::TryTake(std::uint64_t bytes) {
  if (bytes == 0 || bytes > memory_.size()) {
    return std::nullopt;
  }
  const std::uint64_t rounded = RoundUp(bytes);
  const MutexLock lock(mutex_);
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
    return memory_.subspan(offset, bytes);
  }
  return std::nullopt;
}

void LocalBuffer::Release(std::span<std::byte> range) {
  const MutexLock lock(mutex_);
  const auto found = taken_.find(static_cast<std::uint64_t>(range.data() - memory_.data()));
  MC_CHECK(found != taken_.end());
  std::uint64_t begin = found->first;
  std::uint64_t length = found->second;
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

}  // namespace mooncake::store
