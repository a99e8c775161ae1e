// Cuts a call into windows that one message can carry, and keys to what it may carry.
//
// Thread-safety: pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

inline constexpr std::uint64_t kWindowKeyBytes = 16ULL << 20;  // A quarter of an RPC frame.

// The end of the window that begins at `first`: at least one item, at most `max_keys`, at most
// kWindowKeyBytes of keys and at most `max_value_bytes` of values unless the first alone is larger.
// key_bytes(i) and value_bytes(i) give the sizes of item i.
template <typename KeyBytes, typename ValueBytes>
[[nodiscard]] std::uint32_t WindowEnd(std::uint32_t first, std::uint32_t total,
                                      std::uint32_t max_keys, std::uint64_t max_value_bytes,
                                      KeyBytes key_bytes, ValueBytes value_bytes) {
  std::uint64_t keys = key_bytes(first);
  std::uint64_t values = value_bytes(first);
  std::uint32_t end = first + 1;
  while (end < total && end - first < max_keys) {
    keys += key_bytes(end);
    values += value_bytes(end);
    if (keys > kWindowKeyBytes || values > max_value_bytes) {
      break;
    }
    ++end;
  }
  return end;
}

// A key as it is asked for. One that is longer than keys may be would spoil the whole message, so
// the empty one goes in its place: nobody has either.
[[nodiscard]] inline std::string_view KeyToSend(std::string_view key) {
  return key.size() <= kMaxKeyBytes ? key : std::string_view();
}

}  // namespace mooncake::store
