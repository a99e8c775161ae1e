#include "mooncake-transfer-engine/src/engine/managed_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <system_error>
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

std::unexpected<Error> SystemFailure(const char* what, std::uint64_t bytes) {
  const int error = errno;
  return Fail(
      ErrorCode::kExhausted,
      fmt::format("allocate managed memory: {} of {} bytes: {}; lower the size or raise the "
                  "limits of address space and open files",
                  what, bytes, std::generic_category().message(error)));
}

}  // namespace

ManagedMemory::~ManagedMemory() {
  warmer_.Stop();
  for (const Mapping& arena : arenas_) {
    Unmap(arena);
  }
  for (const auto& [address, mapping] : dedicated_) {
    Unmap(mapping);
  }
}

void ManagedMemory::Unmap(const Mapping& mapping) {
  ::munmap(mapping.address, mapping.length_bytes);
  ::close(mapping.fd);
}

Result<ManagedMemory::Mapping> ManagedMemory::MapFile(std::uint64_t length_bytes,
                                                      const ManagedOptions& options) {
  Mapping mapping{.length_bytes = length_bytes};
  mapping.fd = ::memfd_create("mooncake-managed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (mapping.fd < 0) {
    return SystemFailure("memfd_create", length_bytes);
  }
  // Sealed against shrinking, so that a peer which has mapped it can never meet a hole.
  if (::ftruncate(mapping.fd, static_cast<off_t>(length_bytes)) != 0 ||
      ::fcntl(mapping.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    auto failure = SystemFailure("size and seal a memfd", length_bytes);
    ::close(mapping.fd);
    return failure;
  }
  void* address = ::mmap(nullptr, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                         mapping.fd, 0);
  if (address == MAP_FAILED) {
    auto failure = SystemFailure("mmap", length_bytes);
    ::close(mapping.fd);
    return failure;
  }
  mapping.address = static_cast<std::byte*>(address);
  auto registered =
      registrar_.add(MemoryRegistration{.address = address,
                                        .length_bytes = length_bytes,
                                        .location = options.location,
                                        .remote_accessible = options.remote_accessible,
                                        .shared = SharedMemory{.fd = mapping.fd}});
  if (!registered) {
    Unmap(mapping);
    return std::unexpected(std::move(registered).error());
  }
  return mapping;
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
  if (length_bytes > kLargest || options.dedicated) {
    MC_TRY_ASSIGN(const Mapping mapping, MapFile(RoundUpToPage(length_bytes), options));
    {
      const MutexLock lock(mutex_);
      dedicated_.emplace(mapping.address, mapping);
    }
    if (options.warm) {
      warmer_.Add(mapping.address, mapping.length_bytes);
    }
    return mapping.address;
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
    MC_TRY_ASSIGN(const Mapping arena, MapFile(kArenaBytes, options));
    const MutexLock lock(mutex_);
    arenas_.push_back(arena);
    auto& largest = pools_[PoolFor(options)].free[kClasses - 1];
    for (std::uint64_t offset = kArenaBytes; offset != 0; offset -= kLargest) {
      largest.push_back(arena.address + offset - kLargest);
    }
  }
}

Result<void> ManagedMemory::Free(void* address) {
  Mapping own;
  {
    const MutexLock lock(mutex_);
    if (const auto block = blocks_.find(address); block != blocks_.end()) {
      pools_[block->second.pool].free[block->second.size_class].push_back(
          static_cast<std::byte*>(address));
      blocks_.erase(block);
      return {};
    }
    const auto dedicated = dedicated_.find(address);
    if (dedicated == dedicated_.end()) {
      return Fail(ErrorCode::kAddressNotRegistered,
                  fmt::format("free managed memory at {}: it was not allocated here, or freed "
                              "already",
                              address));
    }
    own = dedicated->second;
  }
  MC_TRY(registrar_.remove(address));
  {
    const MutexLock lock(mutex_);
    if (dedicated_.erase(address) == 0) {
      return Fail(ErrorCode::kAddressNotRegistered,
                  fmt::format("free managed memory at {}: another thread freed it", address));
    }
  }
  warmer_.Remove(own.address);
  Unmap(own);
  return {};
}

}  // namespace mooncake::transfer
