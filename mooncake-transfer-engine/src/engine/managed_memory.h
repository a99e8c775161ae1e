// Memory that the engine gives out: pages of sealed memfds, registered, so that a peer on the same
// host can map it and copy once.
//
// Requests up to 256 MiB are rounded up to one of 16 sizes (8 KiB * 2^k) and carved from arenas of
// 2 GiB; larger ones get a file of their own. Blocks are split, never merged, and arenas are never
// given back before the end. Pages are made by their user's first touch, or warmed ahead. A file of
// its own is unmapped once it is freed and nobody holds it any more.
//
// Thread-safety: all methods, from any thread.
// Blocking:      a new arena or file is registered, which may publish.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/base/sealed_memory.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"
#include "mooncake-transfer-engine/src/engine/page_warmer.h"

namespace mooncake::transfer {

class ManagedMemory {
 public:
  static constexpr std::uint64_t kSmallest = 8U << 10U;
  static constexpr std::size_t kClasses = 16;
  static constexpr std::uint64_t kLargest = kSmallest << (kClasses - 1);
  static constexpr std::uint64_t kArenaBytes = std::uint64_t{2} << 30U;

  // How the mapped files are made known; the engine's registration.
  struct Registrar {
    // On an error nobody reaches the file, except after kBusy.
    std::function<Result<void>(const MemoryRegistration&)> add;
    // On an error somebody may still reach it.
    std::function<Result<void>(void*)> remove;
  };

  explicit ManagedMemory(Registrar registrar,
                         PageWarmer::Machine machine = PageWarmer::ThisMachine())
      : registrar_(std::move(registrar)), warmer_(std::move(machine)) {}
  ~ManagedMemory() { warmer_.Stop(); }  // The owner has unregistered all or is gone.
  ManagedMemory(const ManagedMemory&) = delete;
  ManagedMemory& operator=(const ManagedMemory&) = delete;

  [[nodiscard]] Result<void*> Allocate(std::uint64_t length_bytes, const ManagedOptions& options);
  [[nodiscard]] Result<void> Free(void* address);
  // Keeps a file of its own mapped as long as the result lives; null for any other address.
  [[nodiscard]] std::shared_ptr<const void> Hold(void* address);

 private:
  // Arenas are kept apart by what peers may see of them.
  struct Pool {
    std::string location;
    bool remote_accessible = true;
    std::array<std::vector<std::byte*>, kClasses> free;
  };
  struct Block {
    std::size_t pool;
    std::size_t size_class;
  };

  [[nodiscard]] Result<std::shared_ptr<const SealedMemory>> MapFile(std::uint64_t length_bytes,
                                                                    const ManagedOptions& options);
  [[nodiscard]] std::size_t PoolFor(const ManagedOptions& options) MC_REQUIRES(mutex_);
  // A free block of the class, split off a larger one if need be; nullptr when there is none.
  [[nodiscard]] static std::byte* Carve(Pool& pool, std::size_t size_class);

  const Registrar registrar_;
  PageWarmer warmer_;
  Mutex mutex_;
  std::vector<Pool> pools_ MC_GUARDED_BY(mutex_);
  // And files that could not be taken back.
  std::vector<std::shared_ptr<const SealedMemory>> arenas_ MC_GUARDED_BY(mutex_);
  std::unordered_map<void*, Block> blocks_ MC_GUARDED_BY(mutex_);  // Given out.
  std::unordered_map<void*, std::shared_ptr<const SealedMemory>> dedicated_
      MC_GUARDED_BY(mutex_);  // Given out.
};

}  // namespace mooncake::transfer
