// A bounded list of memory pieces for one vectored system call; neighbours are joined.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mooncake::transfer {

class IovList {
 public:
  static constexpr std::size_t kMaxEntries = 512;
  // What one call moves at most: enough to make the call cheap, little enough to stay in the cache.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  // False when it is full: nothing was added, or only the first part of it.
  bool Add(std::byte* base, std::size_t length) {
    const std::size_t room = kMaxBytes - bytes_;
    const std::size_t added = std::min(length, room);
    if (added == 0) {
      return length == 0;
    }
    if (count_ > 0 && End(entries_[count_ - 1]) == base) {
      entries_[count_ - 1].iov_len += added;
    } else if (count_ == kMaxEntries) {
      return false;
    } else {
      entries_[count_++] = {base, added};
    }
    bytes_ += added;
    return added == length;
  }

  [[nodiscard]] std::span<const iovec> entries() const { return std::span(entries_).first(count_); }
  // The front of the list as far as it lies in one page, so that the kernel either can or cannot
  // use it as a whole. Only when not empty.
  [[nodiscard]] iovec FirstPage() const {
    constexpr std::uintptr_t kPageBytes = 4096;
    const auto in_page = reinterpret_cast<std::uintptr_t>(entries_[0].iov_base) % kPageBytes;
    return {entries_[0].iov_base, std::min<std::size_t>(entries_[0].iov_len, kPageBytes - in_page)};
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  static std::byte* End(const iovec& entry) {
    return static_cast<std::byte*>(entry.iov_base) + entry.iov_len;
  }

  std::array<iovec, kMaxEntries> entries_;  // The first `count_` are set.
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

// A place of the given size for bytes that nobody wants, and one of zeros to send in place of bytes
// that may not be seen. The first is written by many threads at once and never read.
inline constexpr std::size_t kFillerBytes = std::size_t{64} << 10;
[[nodiscard]] std::byte* DiscardedBytes();
[[nodiscard]] std::byte* ZeroBytes();  // Never written.

}  // namespace mooncake::transfer
