// The eviction policies by name.
//
// Thread-safety: pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "mooncake-store/src/master/eviction/policy.h"
#include "mooncake-store/src/master/options.h"

namespace mooncake::store {

// "hdi" or "lru"; nothing for other names.
[[nodiscard]] std::optional<EvictionPolicyKind> EvictionPolicyFrom(std::string_view name);

[[nodiscard]] std::unique_ptr<EvictionPolicy> MakePolicy(EvictionPolicyKind kind,
                                                         std::uint64_t seed);

}  // namespace mooncake::store
