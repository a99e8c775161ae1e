// The piece of work that a transport moves: one contiguous range, in one direction, to or from one
// peer.
//
// Ownership: the engine owns slices and their memory ranges; a transport may touch both from Post()
// until it has handed the
//            slice to SliceSink::OnDone(), and never after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mooncake-common/src/base/result.h"

namespace mooncake::transfer {

enum class Opcode : std::uint8_t {
  kRead = 0,
  kWrite = 1
};  // Values are those of the wire and of the public APIs.

class SliceSink;

struct Slice {
  std::byte* local = nullptr;        // Destination of a read, source of a write.
  std::uint64_t remote_address = 0;  // In the peer's address space.
  std::uint64_t length_bytes = 0;    // Never zero.
  Opcode opcode = Opcode::kRead;
  SliceSink* sink = nullptr;  // Who hears of the end; the transport does not interpret it.
  // The fields below belong to whoever holds the slice: the transport between Post() and OnDone(),
  // else the engine.
  Slice* next = nullptr;
  std::uint64_t scratch = 0;
};

// Told exactly once for each slice taken by Post(), on whichever thread drove the transport (the
// waiting caller or the reactor). Must not block; may post again.
class SliceSink {
 public:
  // All of `slices` were moved whole: their bytes are in place and visible.
  virtual void OnDone(std::span<Slice* const> slices) noexcept = 0;
  // None of `slices` is known to have been moved; `why` is the same for all.
  virtual void OnFailed(std::span<Slice* const> slices, const Error& why) noexcept = 0;

 protected:
  ~SliceSink() = default;
};

}  // namespace mooncake::transfer
