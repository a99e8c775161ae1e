// A part of a slice: what one thread copies, or one frame carries, at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake::transfer {

// Without initialisers, for long arrays on the stack.
struct Piece {
  Slice* slice;
  std::uint64_t offset_bytes;  // From the start of the slice.
  std::uint64_t length_bytes;  // Never zero.

  [[nodiscard]] std::byte* local() const { return slice->local + offset_bytes; }
  [[nodiscard]] std::uint64_t remote_address() const {
    return slice->remote_address + offset_bytes;
  }
};

struct PieceFailure {
  std::size_t index = 0;  // In the list of pieces spoken of.
  Error why;
};

}  // namespace mooncake::transfer
