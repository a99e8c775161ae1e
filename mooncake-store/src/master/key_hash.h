// The one hash of a key: it chooses the shard and the place in its index, and it is what the
// eviction policy knows keys by. Never stored outside the process.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace mooncake::store {

// 64 well-mixed bits of tenant and key.
[[nodiscard]] std::uint64_t HashKey(std::uint32_t tenant, std::string_view key);

}  // namespace mooncake::store
