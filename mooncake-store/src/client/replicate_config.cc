#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <string_view>

#include "mooncake-store/include/mooncake/store/client.h"

namespace mooncake::store {
namespace {

constexpr std::array<std::string_view, 10> kDataTypes = {
    "UNKNOWN",    "KVCACHE",  "TENSOR",          "WEIGHT",   "SAMPLE",
    "ACTIVATION", "GRADIENT", "OPTIMIZER_STATE", "METADATA", "GENERAL"};
constexpr std::array<std::string_view, 3> kSoftPinActions = {"PRESERVE", "ENABLE", "DISABLE"};

}  // namespace

std::string ReplicateConfig::ToString() const {
  std::string text = fmt::format(
      "ReplicateConfig: {{ replica_num: {}, nof_replica_num: {}, dfs_replica_num: {}, "
      "soft_pin_action: {}, "
      "soft_pin_ttl_ms: {}, with_hard_pin: {:d}, preferred_segments: [{}], preferred_nof_segments: "
      "[{}], ",
      replica_num, nof_replica_num, dfs_replica_num,
      kSoftPinActions[static_cast<std::size_t>(soft_pin_action)],
      soft_pin_ttl_ms ? std::to_string(*soft_pin_ttl_ms) : "default", with_hard_pin,
      fmt::join(preferred_segments, ", "), fmt::join(preferred_nof_segments, ", "));
  if (!preferred_segment.empty()) {
    text += fmt::format("preferred_segment: {}, ", preferred_segment);
  }
  text += fmt::format("prefer_alloc_in_same_node: {:d}, data_type: {}", prefer_alloc_in_same_node,
                      data_type < kDataTypes.size() ? kDataTypes[data_type] : "UNKNOWN");
  if (group_ids) {
    text += fmt::format(", group_ids: [{}]", fmt::join(*group_ids, ", "));
  }
  return text + " }";
}

}  // namespace mooncake::store
