// Bytes on their way in or out of a socket: added at the end, taken from the front, the memory
// reused.
//
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace mooncake::rpc {

class ByteBuffer {
 public:
  [[nodiscard]] std::span<std::byte> data() { return {bytes_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] std::span<const std::byte> data() const {
    return {bytes_.get() + begin_, end_ - begin_};
  }
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }

  // At least `bytes` of room after the end, not initialised; Commit() what was filled. Moves what
  // is there when that makes room, always by a multiple of 8, so alignment stays as it was.
  [[nodiscard]] std::span<std::byte> Room(std::size_t bytes);
  void Commit(std::size_t bytes) { end_ += bytes; }
  void Append(std::span<const std::byte> bytes);
  void Consume(std::size_t bytes);
  // Drops bytes at the end: keeps the first `size`.
  void Truncate(std::size_t size) { end_ = begin_ + size; }

  void Clear() { begin_ = end_ = 0; }

  // Gives memory beyond `keep_bytes` back if nothing is in it.
  void Shrink(std::size_t keep_bytes);

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace mooncake::rpc
