#include "mooncake-common/src/net/rpc/byte_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mooncake::rpc {
namespace {

constexpr std::size_t kFirstBytes = 4096;
constexpr std::size_t kStepBytes = 8;  // Frames, and what FlatBuffers hold, align to this.

}  // namespace

std::span<std::byte> ByteBuffer::Room(std::size_t bytes) {
  if (capacity_ - end_ >= bytes) {
    return {bytes_.get() + end_, capacity_ - end_};
  }
  const std::size_t skipped = begin_ % kStepBytes;  // Stays in front of the first byte.
  const std::size_t filled = skipped + size();
  if (capacity_ - filled >= bytes && filled <= capacity_ / 2) {
    std::memmove(bytes_.get(), bytes_.get() + begin_ - skipped, filled);
  } else {
    const std::size_t larger = std::max({kFirstBytes, capacity_ * 2, filled + bytes});
    auto moved = std::make_unique_for_overwrite<std::byte[]>(larger);
    if (filled > 0) {
      std::memcpy(moved.get(), bytes_.get() + begin_ - skipped, filled);
    }
    bytes_ = std::move(moved);
    capacity_ = larger;
  }
  begin_ = skipped;
  end_ = filled;
  return {bytes_.get() + end_, capacity_ - end_};
}

void ByteBuffer::Append(std::span<const std::byte> bytes) {
  if (!bytes.empty()) {
    std::memcpy(Room(bytes.size()).data(), bytes.data(), bytes.size());
    Commit(bytes.size());
  }
}

void ByteBuffer::Consume(std::size_t bytes) {
  begin_ += bytes;
  // An empty buffer starts again at the front, where frames are aligned: whole frames were taken.
  if (begin_ == end_ && begin_ % kStepBytes == 0) {
    begin_ = end_ = 0;
  }
}

void ByteBuffer::Shrink(std::size_t keep_bytes) {
  if (empty() && capacity_ > keep_bytes) {
    *this = ByteBuffer();
  }
}

}  // namespace mooncake::rpc
