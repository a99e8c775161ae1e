// The caller's memory that zero-copy calls may use.
//
// Thread-safety: any thread; one leaf lock inside.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/mapped_memory.h"
#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake::store {

class RegisteredBuffers {
 public:
  // Who told the engine of a buffer, and takes it out there.
  enum class Registrar : std::uint8_t { kStore, kUser };

  // False if it is empty or overlaps another.
  [[nodiscard]] bool Add(const void* address, std::uint64_t length_bytes, MemoryAccess access,
                         Registrar registrar) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    if (length_bytes == 0 || begin + length_bytes < begin) {
      return false;
    }
    const MutexLock lock(mutex_);
    const auto next = buffers_.lower_bound(begin);
    if (next != buffers_.end() && next->first < begin + length_bytes) {
      return false;
    }
    if (next != buffers_.begin() && std::prev(next)->second.end > begin) {
      return false;
    }
    buffers_.emplace_hint(next, begin, Buffer{begin + length_bytes, access, registrar});
    return true;
  }
  // Nothing if none begins at `address`.
  std::optional<Registrar> Remove(const void* address) {
    const MutexLock lock(mutex_);
    const auto buffer = buffers_.extract(reinterpret_cast<std::uintptr_t>(address));
    return buffer.empty() ? std::nullopt : std::optional(buffer.mapped().registrar);
  }
  // Where those begin that the store told the engine of; none is there any more.
  [[nodiscard]] std::vector<void*> TakeAll() {
    std::vector<void*> begins;
    const MutexLock lock(mutex_);
    for (const auto& [begin, buffer] : std::exchange(buffers_, {})) {
      if (buffer.registrar == Registrar::kStore) {
        begins.push_back(reinterpret_cast<void*>(begin));  // NOLINT(performance-no-int-to-ptr)
      }
    }
    return begins;
  }
  // Whether one buffer holds the whole range and may be used so.
  [[nodiscard]] bool Contains(const void* address, std::uint64_t length_bytes,
                              MemoryAccess access) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const MutexLock lock(mutex_);
    const auto next = buffers_.upper_bound(begin);
    if (next == buffers_.begin()) {
      return false;
    }
    const Buffer& buffer = std::prev(next)->second;
    return buffer.end >= begin && buffer.end - begin >= length_bytes &&
           (access == MemoryAccess::kRead || buffer.access == MemoryAccess::kWrite);
  }

 private:
  struct Buffer {
    std::uintptr_t end = 0;
    MemoryAccess access = MemoryAccess::kWrite;  // What it may be used for at most.
    Registrar registrar = Registrar::kStore;
  };

  mutable Mutex mutex_;
  std::map<std::uintptr_t, Buffer> buffers_ MC_GUARDED_BY(mutex_);  // By their begin.
};

}  // namespace mooncake::store
