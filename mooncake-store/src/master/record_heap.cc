#include "mooncake-store/src/master/record_heap.h"

#include <sys/mman.h>

#include <cstdlib>

#include "mooncake-common/src/base/result.h"

// Under address sanitizer each record is malloc's, so that a use after free is seen.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MC_RECORD_HEAP_IS_MALLOC 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MC_RECORD_HEAP_IS_MALLOC 1
#endif

namespace mooncake::store {

namespace {

// Large enough that a system call is paid once in hundreds of records; aligned, so that the chunk
// of a record is found from its address.
constexpr std::size_t kChunkBytes = 65536;

#ifdef MC_RECORD_HEAP_IS_MALLOC
constexpr bool kAlwaysMalloc = true;
#else
constexpr bool kAlwaysMalloc = false;
#endif

struct FreeRecord {
  FreeRecord* next;
};

void* MapAligned() {
  const auto map = [](std::size_t bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MC_CHECK(at != MAP_FAILED);
    return static_cast<char*>(at);
  };
  char* at = map(kChunkBytes);
  if (reinterpret_cast<std::uintptr_t>(at) % kChunkBytes == 0) {
    return at;
  }
  munmap(at, kChunkBytes);
  at = map(2 * kChunkBytes);
  const std::size_t head = kChunkBytes - reinterpret_cast<std::uintptr_t>(at) % kChunkBytes;
  munmap(at, head);
  if (head != kChunkBytes) {
    munmap(at + head + kChunkBytes, kChunkBytes - head);
  }
  return at + head;
}

}  // namespace

struct RecordHeap::Chunk {
  Chunk* next;
  Chunk* previous;
  FreeRecord* free;           // Returned records,
  std::uint32_t fresh_bytes;  // and behind this offset those never given out.
  std::uint32_t used;
};

RecordHeap::~RecordHeap() {
  // Records are the owner's to free; what is left is the chunk kept for later.
  if (spare_ != nullptr) {
    munmap(spare_, kChunkBytes);
  }
}

RecordHeap::Chunk* RecordHeap::NewChunk() {
  Chunk* chunk = spare_;
  spare_ = nullptr;
  if (chunk == nullptr) {
    chunk = static_cast<Chunk*>(MapAligned());
    memory_bytes_ += kChunkBytes;
  }
  *chunk = {.fresh_bytes = (sizeof(Chunk) + kStep - 1) / kStep * kStep};
  return chunk;
}

void RecordHeap::Link(std::size_t size_class, Chunk* chunk) {
  chunk->previous = nullptr;
  chunk->next = with_room_[size_class];
  if (chunk->next != nullptr) {
    chunk->next->previous = chunk;
  }
  with_room_[size_class] = chunk;
}

void RecordHeap::Unlink(std::size_t size_class, Chunk* chunk) {
  (chunk->previous != nullptr ? chunk->previous->next : with_room_[size_class]) = chunk->next;
  if (chunk->next != nullptr) {
    chunk->next->previous = chunk->previous;
  }
}

void* RecordHeap::Allocate(std::size_t bytes) {
  if (kAlwaysMalloc || bytes > kMaxSmallBytes) {
    void* record = std::malloc(bytes);  // NOLINT(cppcoreguidelines-no-malloc)
    MC_CHECK(record != nullptr);
    memory_bytes_ += bytes;
    return record;
  }
  const std::size_t size_class = (bytes + kStep - 1) / kStep;
  const std::size_t size = size_class * kStep;
  Chunk* chunk = with_room_[size_class];
  if (chunk == nullptr) {
    chunk = NewChunk();
    Link(size_class, chunk);
  }
  void* record = chunk->free;
  if (record != nullptr) {
    chunk->free = chunk->free->next;
  } else {
    record = reinterpret_cast<char*>(chunk) + chunk->fresh_bytes;
    chunk->fresh_bytes += static_cast<std::uint32_t>(size);
  }
  ++chunk->used;
  if (chunk->free == nullptr && chunk->fresh_bytes + size > kChunkBytes) {
    Unlink(size_class, chunk);
  }
  return record;
}

void RecordHeap::Free(void* record, std::size_t bytes) {
  if (kAlwaysMalloc || bytes > kMaxSmallBytes) {
    std::free(record);  // NOLINT(cppcoreguidelines-no-malloc)
    memory_bytes_ -= bytes;
    return;
  }
  const std::size_t size_class = (bytes + kStep - 1) / kStep;
  const std::size_t size = size_class * kStep;
  auto* chunk = reinterpret_cast<Chunk*>(static_cast<char*>(record) -
                                         reinterpret_cast<std::uintptr_t>(record) % kChunkBytes);
  if (chunk->free == nullptr && chunk->fresh_bytes + size > kChunkBytes) {
    Link(size_class, chunk);  // It was full.
  }
  auto* free_record = static_cast<FreeRecord*>(record);
  free_record->next = chunk->free;
  chunk->free = free_record;
  if (--chunk->used > 0) {
    return;
  }
  Unlink(size_class, chunk);
  if (spare_ == nullptr) {
    spare_ = chunk;
  } else {
    munmap(chunk, kChunkBytes);
    memory_bytes_ -= kChunkBytes;
  }
}

}  // namespace mooncake::store
