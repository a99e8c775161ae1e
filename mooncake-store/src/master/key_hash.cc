#include "mooncake-store/src/master/key_hash.h"

#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library's name.
#include <xxhash.h>

namespace mooncake::store {

std::uint64_t HashKey(std::uint32_t tenant, std::string_view key) {
  return XXH3_64bits_withSeed(key.data(), key.size(), tenant);
}

}  // namespace mooncake::store
