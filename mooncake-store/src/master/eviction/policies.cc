#include "mooncake-store/src/master/eviction/policies.h"

#include "mooncake-store/src/master/eviction/hdi/hdi.h"
#include "mooncake-store/src/master/eviction/lru.h"

namespace mooncake::store {

std::optional<EvictionPolicyKind> EvictionPolicyFrom(std::string_view name) {
  if (name == "hdi") {
    return EvictionPolicyKind::kHdi;
  }
  if (name == "lru") {
    return EvictionPolicyKind::kLru;
  }
  return std::nullopt;
}

std::unique_ptr<EvictionPolicy> MakePolicy(EvictionPolicyKind kind, std::uint64_t seed) {
  if (kind == EvictionPolicyKind::kLru) {
    return std::make_unique<LruPolicy>();
  }
  return std::make_unique<HdiPolicy>(seed);
}

}  // namespace mooncake::store
