// Whether a process of this host still serves, told without a system call.
//
// The process shares one page: its nonce, and a lock that one of its threads holds for as long as
// that thread lives. The lock is robust: when the thread ends, whatever ended it, the kernel marks
// it (get_robust_list(2)) before anybody can learn that the process has ended. So whoever finds the
// nonce there, and the lock held, has the right process, and it serves.
//
// Thread-safety: all methods, any thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/base/sealed_memory.h"

namespace mooncake::transfer {

// What lies at the nonce's address, in the memory of its owner and of each peer that mapped it.
// Owner and peers may be of different builds: nothing here may move.
struct PresencePage {
  std::atomic<std::uint64_t> nonce;
  pthread_mutex_t life;

  // Whether the owner serves, under this nonce. False says nothing: perhaps no thread has taken the
  // lock yet.
  [[nodiscard]] bool Vouches(std::uint64_t expected_nonce) const;
};

// The owner's side.
class Presence {
 public:
  // The nonce is zero, and nobody holds the lock. Errors: kExhausted.
  [[nodiscard]] static Result<std::shared_ptr<Presence>> Create();
  ~Presence() = default;
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // Has the calling thread hold the lock until it ends, and the page live until then.
  static void HoldByThisThread(std::shared_ptr<Presence> presence);

  [[nodiscard]] std::atomic<std::uint64_t>& nonce() { return page_->nonce; }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(page_); }
  // Of the memfd that the page is.
  [[nodiscard]] int fd() const { return memory_->fd(); }

 private:
  Presence(PresencePage* page, std::shared_ptr<const SealedMemory> memory)
      : page_(page), memory_(std::move(memory)) {}

  PresencePage* const page_;
  const std::shared_ptr<const SealedMemory> memory_;
};

}  // namespace mooncake::transfer
