// The caller's memory that zero-copy calls may use.
//
// Thread-safety: any thread; one leaf lock inside.
#pragma once

#include <cstdint>
#include <map>

#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake::store {

class RegisteredBuffers {
 public:
  // False if it is empty or overlaps another.
  [[nodiscard]] bool Add(const void* address, std::uint64_t length_bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    if (length_bytes == 0 || begin + length_bytes < begin) {
      return false;
    }
    const MutexLock lock(mutex_);
    const auto next = ends_.lower_bound(begin);
    if (next != ends_.end() && next->first < begin + length_bytes) {
      return false;
    }
    if (next != ends_.begin() && std::prev(next)->second > begin) {
      return false;
    }
    ends_.emplace_hint(next, begin, begin + length_bytes);
    return true;
  }
  // False if none begins at `address`.
  [[nodiscard]] bool Remove(const void* address) {
    const MutexLock lock(mutex_);
    return ends_.erase(reinterpret_cast<std::uintptr_t>(address)) == 1;
  }
  [[nodiscard]] bool Contains(const void* address, std::uint64_t length_bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const MutexLock lock(mutex_);
    const auto next = ends_.upper_bound(begin);
    return next != ends_.begin() && std::prev(next)->second - begin >= length_bytes &&
           std::prev(next)->second >= begin;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::uintptr_t, std::uintptr_t> ends_ MC_GUARDED_BY(mutex_);  // Begin -> end.
};

}  // namespace mooncake::store
