// Memory for many small records of few sizes, in chunks that go back to the operating system as
// soon as they are empty. (malloc would keep the peak: small blocks stay in its free lists.)
//
// Thread-safety: none; the owner's lock.
// Cost:          no byte a record beyond rounding up to 16. Records above kMaxSmallBytes are
// malloc's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mooncake::store {

class RecordHeap {
 public:
  RecordHeap() = default;
  ~RecordHeap();
  RecordHeap(const RecordHeap&) = delete;
  RecordHeap& operator=(const RecordHeap&) = delete;

  // Aligned to 16. Aborts when the machine has no memory.
  [[nodiscard]] void* Allocate(std::size_t bytes);
  // `bytes` as given to Allocate().
  void Free(void* record, std::size_t bytes);

  // Held from the system for small records, and what large ones asked for.
  [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  static constexpr std::size_t kStep = 16;
  static constexpr std::size_t kMaxSmallBytes = 1024;
  static constexpr std::size_t kClasses = kMaxSmallBytes / kStep;

  struct Chunk;

  Chunk* NewChunk();
  void Link(std::size_t size_class, Chunk* chunk);
  void Unlink(std::size_t size_class, Chunk* chunk);

  std::array<Chunk*, kClasses + 1> with_room_{};  // By size in steps; doubly linked.
  Chunk* spare_ = nullptr;  // One empty chunk is kept, so that no boundary thrashes.
  std::size_t memory_bytes_ = 0;
};

}  // namespace mooncake::store
