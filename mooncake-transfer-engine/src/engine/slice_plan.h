// How long the slices of a request are: small requests stay whole, large ones are cut so that every
// usable path gets work and none waits for a giant.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mooncake::transfer {

struct SliceLimits {
  std::uint64_t max_slice_bytes = 16U << 20U;  // The least that any transport of the engine takes.
  std::uint32_t usable_paths = 1;              // Of equal rank.
};

// Below this a cut costs more than another path gains: about what a path moves in the time of one
// more message.
inline constexpr std::uint64_t kMinCutBytes = 64U << 10U;
// With several paths each gets about so many slices, so that a slow one can be relieved.
inline constexpr std::uint64_t kSlicesPerPath = 4;

// The length of each slice but the last, which takes the rest. Never zero; a multiple of 4 KiB
// where the request is cut.
[[nodiscard]] constexpr std::uint64_t SliceLength(std::uint64_t request_bytes,
                                                  const SliceLimits& limits) {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t most = std::max<std::uint64_t>(limits.max_slice_bytes, 1);
  if (limits.usable_paths <= 1 || request_bytes <= kMinCutBytes) {
    return most;
  }
  const std::uint64_t share = request_bytes / (limits.usable_paths * kSlicesPerPath);
  const std::uint64_t paged = std::max(kMinCutBytes, (share + kPage - 1) / kPage * kPage);
  return std::min(most, paged);
}

}  // namespace mooncake::transfer
