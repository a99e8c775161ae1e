#include "mooncake-transfer-engine/src/transports/local/presence.h"

#include <fmt/core.h>
#include <linux/futex.h>
#include <unistd.h>

#include <new>
#include <utility>
#include <vector>

namespace mooncake::transfer {
namespace {

// The locks that a thread holds. Given back when it ends in good order: its page may be unmapped
// then, and the kernel must not look for locks there.
class Held {
 public:
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    for (PresencePage* page : pages_) {
      ::pthread_mutex_unlock(&page->life);
    }
  }
  void Add(PresencePage& page, std::shared_ptr<Presence> owner) {
    pages_.push_back(&page);
    owners_.push_back(std::move(owner));
  }

 private:
  std::vector<PresencePage*> pages_;
  std::vector<std::shared_ptr<Presence>> owners_;
};

thread_local Held held;

}  // namespace

bool PresencePage::Vouches(std::uint64_t expected_nonce) const {
  // The futex word of a robust lock, as the kernel and the C library agreed on it: the holder's
  // thread id, and a bit that the kernel sets when that thread has died.
  const int word = __atomic_load_n(&life.__data.__lock, __ATOMIC_ACQUIRE);
  return (word & FUTEX_TID_MASK) != 0 && (word & FUTEX_OWNER_DIED) == 0 &&
         nonce.load(std::memory_order_acquire) == expected_nonce;
}

Result<std::shared_ptr<Presence>> Presence::Create() {
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  auto memory = SealedMemory::Create("mooncake-presence", page_bytes);
  if (!memory) {
    return Fail(memory.error().code,
                fmt::format("make a page that tells peers that this process serves: {}",
                            memory.error().message));
  }
  auto* const page = new ((*memory)->address()) PresencePage{};
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&page->life, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
  return std::shared_ptr<Presence>(new Presence(page, *std::move(memory)));
}

void Presence::HoldByThisThread(std::shared_ptr<Presence> presence) {
  PresencePage& page = *presence->page_;
  if (::pthread_mutex_trylock(&page.life) == 0) {
    held.Add(page, std::move(presence));
  }
}

}  // namespace mooncake::transfer
