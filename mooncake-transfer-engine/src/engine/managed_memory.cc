#include "mooncake-transfer-engine/src/engine/managed_memory.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

namespace mooncake::transfer {

namespace {

std::uint64_t RoundUpToPage(std::uint64_t bytes) {
  constexpr std::uint64_t kPage = 4096;
  return (bytes + kPage - 1) / kPage * kPage;
}

std::size_t ClassOf(std::uint64_t bytes) {
  const std::uint64_t units = (bytes + ManagedMemory::kSmallest - 1) / ManagedMemory::kSmallest;
  return static_cast<std::size_t>(std::bit_width(units - 1));
}

}  // namespace

Result<std::shared_ptr<const SealedMemory>> ManagedMemory::MapFile(std::uint64_t length_bytes,
                                                                   const ManagedOptions& options) {
  auto memory = SealedMemory::Create("mooncake-managed", length_bytes);
  if (!memory) {
    return Fail(memory.error().code,
                fmt::format("allocate managed memory: {}; lower the size or raise the limits of "
                            "address space and open files",
                            memory.error().message));
  }
  auto added = registrar_.add(MemoryRegistration{.address = (*memory)->address(),
                                                 .length_bytes = length_bytes,
                                                 .location = options.location,
                                                 .remote_accessible = options.remote_accessible,
                                                 .shared = SharedMemory{.fd = (*memory)->fd()}});
  if (!added) {
    if (added.error().code == ErrorCode::kBusy) {
      const MutexLock lock(mutex_);
      arenas_.push_back(*std::move(memory));  // A peer still uses it, and nobody says until when.
    }
    return std::unexpected(std::move(added).error());
  }
  return *std::move(memory);
}

std::size_t ManagedMemory::PoolFor(const ManagedOptions& options) {
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    if (pools_[i].location == options.location &&
        pools_[i].remote_accessible == options.remote_accessible) {
      return i;
    }
  }
  pools_.push_back(
      Pool{.location = options.location, .remote_accessible = options.remote_accessible});
  return pools_.size() - 1;
}

std::byte* ManagedMemory::Carve(Pool& pool, std::size_t size_class) {
  std::size_t from = size_class;
  while (from < kClasses && pool.free[from].empty()) {
    ++from;
  }
  if (from == kClasses) {
    return nullptr;
  }
  std::byte* block = pool.free[from].back();
  pool.free[from].pop_back();
  while (from > size_class) {
    --from;
    pool.free[from].push_back(block + (kSmallest << from));
  }
  return block;
}

Result<void*> ManagedMemory::Allocate(std::uint64_t length_bytes, const ManagedOptions& options) {
  if (length_bytes == 0) {
    return Fail(ErrorCode::kInvalidArgument, "allocate managed memory of 0 bytes; give a length");
  }
  const std::uint64_t mapped = RoundUpToPage(length_bytes);
  if (mapped < length_bytes) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("allocate managed memory of {} bytes: more than there are addresses",
                            length_bytes));
  }
  if (length_bytes > kLargest || options.dedicated) {
    MC_TRY_ASSIGN(auto mapping, MapFile(mapped, options));
    void* const address = mapping->address();
    {
      const MutexLock lock(mutex_);
      dedicated_.emplace(address, std::move(mapping));
    }
    if (options.warm) {
      warmer_.Add(static_cast<std::byte*>(address), mapped);
    }
    return address;
  }
  const std::size_t size_class = ClassOf(length_bytes);
  while (true) {
    {
      const MutexLock lock(mutex_);
      const std::size_t pool = PoolFor(options);
      if (std::byte* block = Carve(pools_[pool], size_class)) {
        blocks_.emplace(block, Block{.pool = pool, .size_class = size_class});
        return block;
      }
    }
    // Two threads may come here at once and add an arena each: untouched pages cost nothing.
    MC_TRY_ASSIGN(auto arena, MapFile(kArenaBytes, options));
    const MutexLock lock(mutex_);
    auto& largest = pools_[PoolFor(options)].free[kClasses - 1];
    for (std::uint64_t offset = kArenaBytes; offset != 0; offset -= kLargest) {
      largest.push_back(arena->address() + offset - kLargest);
    }
    arenas_.push_back(std::move(arena));
  }
}

Result<void> ManagedMemory::Free(void* address) {
  {
    const MutexLock lock(mutex_);
    if (const auto block = blocks_.find(address); block != blocks_.end()) {
      pools_[block->second.pool].free[block->second.size_class].push_back(
          static_cast<std::byte*>(address));
      blocks_.erase(block);
      return {};
    }
    if (!dedicated_.contains(address)) {
      return Fail(ErrorCode::kAddressNotRegistered,
                  fmt::format("free managed memory at {}: it was not allocated here, or freed "
                              "already",
                              address));
    }
  }
  MC_TRY(registrar_.remove(address));
  warmer_.Remove(static_cast<const std::byte*>(address));
  std::shared_ptr<const SealedMemory> last;  // Unmapped without the lock.
  const MutexLock lock(mutex_);
  const auto dedicated = dedicated_.find(address);
  if (dedicated == dedicated_.end()) {
    return Fail(ErrorCode::kAddressNotRegistered,
                fmt::format("free managed memory at {}: another thread freed it", address));
  }
  last = std::move(dedicated->second);
  dedicated_.erase(dedicated);
  return {};
}

std::shared_ptr<const void> ManagedMemory::Hold(void* address) {
  const MutexLock lock(mutex_);
  const auto dedicated = dedicated_.find(address);
  return dedicated == dedicated_.end() ? nullptr : dedicated->second;
}

}  // namespace mooncake::transfer
