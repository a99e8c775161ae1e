// Hands out ranges of the store's registered local buffer, to objects that are got without a place
// of their own. Nobody waits for it: who finds it full makes memory of its own.
//
// Thread-safety: any thread; one leaf lock inside.
// Ownership:     the memory is never read or written here. It lives as long as `hold`, or else is
//                the caller's and outlives the object. Whoever keeps a range shares the object, so
//                that the range outlives the client that gave it.
// Units:         bytes; every range begins at a multiple of kAlignment from the base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake::store {

class LocalBuffer {
 public:
  static constexpr std::uint64_t kAlignment = 64;

  explicit LocalBuffer(std::span<std::byte> memory, std::shared_ptr<const void> hold = nullptr);
  LocalBuffer(const LocalBuffer&) = delete;
  LocalBuffer& operator=(const LocalBuffer&) = delete;

  [[nodiscard]] std::uint64_t size_bytes() const { return memory_.size(); }
  // Whether `address` lies inside the buffer's memory.
  [[nodiscard]] bool Contains(const std::byte* address, std::uint64_t length_bytes) const;

  // A range of exactly `bytes`, or nothing while it does not fit. Zero bytes and more than the
  // whole never fit.
  [[nodiscard]] std::optional<std::span<std::byte>> TryTake(std::uint64_t bytes);

  // Takes back a range that TryTake gave.
  void Release(std::span<std::byte> range);

 private:
  const std::span<std::byte> memory_;
  const std::shared_ptr<const void> hold_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_ MC_GUARDED_BY(mutex_);   // Offset -> length, merged.
  std::map<std::uint64_t, std::uint64_t> taken_ MC_GUARDED_BY(mutex_);  // Offset -> rounded length.
};

}  // namespace mooncake::store
