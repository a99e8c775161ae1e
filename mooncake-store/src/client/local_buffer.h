// Hands out ranges of the store's registered local buffer: staging for copying puts and gets,
// buffer handles, leases of a buffer pool.
//
// Who finds it full queues and is served strictly in order, so that a large request is not starved
// by small ones; everyone brings a deadline. It does not sleep: the owner of a ticket polls it, at
// once after some Release() said that tickets were granted, and at the deadline.
//
// Thread-safety: any thread; one leaf lock inside.
// Ownership:     the memory is never read or written here. It lives as long as `hold`, or else is
//                the caller's and outlives the object. Whoever keeps a range shares the object, so
//                that the range outlives the client that gave it.
// Units:         bytes; every range begins at a multiple of kAlignment from the base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/mutex.h"

namespace mooncake::store {

class LocalBuffer {
 public:
  static constexpr std::uint64_t kAlignment = 64;
  using Ticket = std::uint64_t;

  enum class WaitState : std::uint8_t { kWaiting, kGranted, kExpired };
  struct Answer {
    WaitState state = WaitState::kWaiting;
    std::span<std::byte> range;  // Only when granted; then the poller's to release.
  };

  explicit LocalBuffer(std::span<std::byte> memory, std::shared_ptr<const void> hold = nullptr);
  LocalBuffer(const LocalBuffer&) = delete;
  LocalBuffer& operator=(const LocalBuffer&) = delete;

  [[nodiscard]] std::uint64_t size_bytes() const { return memory_.size(); }
  [[nodiscard]] std::uint64_t used_bytes() const;
  // Whether `address` lies inside the buffer's memory.
  [[nodiscard]] bool Contains(const std::byte* address, std::uint64_t length_bytes) const;

  // A range of exactly `bytes`, or nothing while it does not fit or others wait in front. Zero
  // bytes and more than the whole never fit.
  [[nodiscard]] std::optional<std::span<std::byte>> TryTake(std::uint64_t bytes);

  // Queues for `bytes` until `deadline`. Nothing if it could never fit.
  [[nodiscard]] std::optional<Ticket> Queue(std::uint64_t bytes, Instant deadline);
  // What became of a ticket. Granted and expired are told once; the ticket is gone then. An unknown
  // ticket is expired.
  [[nodiscard]] Answer Poll(Ticket ticket, Instant now);
  // Gives up a ticket in any state; a range granted meanwhile goes back.
  void Abandon(Ticket ticket);

  // Takes back a range that TryTake or Poll gave. Returns how many waiting tickets are granted by
  // it: more than zero means that their owners should poll now.
  std::size_t Release(std::span<std::byte> range);

 private:
  struct Waiter {
    std::uint64_t bytes = 0;
    Instant deadline{};
    std::optional<std::uint64_t> offset;  // Set once granted.
  };

  [[nodiscard]] std::optional<std::uint64_t> Carve(std::uint64_t bytes) MC_REQUIRES(mutex_);
  void GiveBack(std::uint64_t offset) MC_REQUIRES(mutex_);
  std::size_t Grant() MC_REQUIRES(mutex_);
  [[nodiscard]] std::span<std::byte> At(std::uint64_t offset, std::uint64_t bytes) const {
    return memory_.subspan(offset, bytes);
  }

  const std::span<std::byte> memory_;
  const std::shared_ptr<const void> hold_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_ MC_GUARDED_BY(mutex_);   // Offset -> length, merged.
  std::map<std::uint64_t, std::uint64_t> taken_ MC_GUARDED_BY(mutex_);  // Offset -> rounded length.
  std::uint64_t used_bytes_ MC_GUARDED_BY(mutex_) = 0;
  std::deque<Ticket> queue_
      MC_GUARDED_BY(mutex_);  // Waiting, in order; abandoned ones are skipped.
  std::unordered_map<Ticket, Waiter> waiters_ MC_GUARDED_BY(mutex_);
  Ticket next_ticket_ MC_GUARDED_BY(mutex_) = 1;
};

}  // namespace mooncake::store
