#include "mooncake-store/src/server/metadata_cleanup.h"

#include <fmt/format.h>

#include <algorithm>

namespace mooncake::store {
namespace {

std::string PrefixOf(const std::string& cluster_id) {
  return cluster_id.empty() ? "mooncake/" : fmt::format("mooncake/{}/", cluster_id);
}

}  // namespace

void MetadataCleanup::OnSegment(const SegmentEvent& event) {
  const MutexLock lock(mutex_);
  const SegmentNumber number = event.identity.number;
  switch (event.kind) {
    case SegmentEventKind::kMounted:
      engines_[number] = {.name = event.info.te_endpoint,
                          .owner = event.owner,
                          .rpc_meta = metadata_.Find(RpcMetaKey(event.info.te_endpoint))};
      break;
    case SegmentEventKind::kGone:
      engines_.erase(number);
      break;
    case SegmentEventKind::kStatus:
      engines_[number].leaving = event.status == SegmentStatus::kUnmounting;
      // Who unmounts a segment of its own may still serve others.
      if (event.status == SegmentStatus::kUnmounting && !event.owner_left) {
        const Engine& lost = engines_[number];
        if (!TakenOver(lost)) {
          (void)metadata_.Erase(fmt::format("{}{}{}", PrefixOf(cluster_id_),
                                            lost.name.contains('/') ? "" : "ram/", lost.name));
          (void)metadata_.Erase(RpcMetaKey(lost.name));
        }
      }
      break;
  }
}

std::string MetadataCleanup::RpcMetaKey(const std::string& name) const {
  return fmt::format("{}rpc_meta/{}", PrefixOf(cluster_id_), name);
}

bool MetadataCleanup::TakenOver(const Engine& lost) const {
  return std::ranges::any_of(engines_,
                             [&](const auto& mounted) {
                               const Engine& engine = mounted.second;
                               return engine.name == lost.name && engine.owner != lost.owner &&
                                      !engine.leaving;
                             }) ||
         metadata_.Find(RpcMetaKey(lost.name)).value_or(lost.rpc_meta.value_or("")) !=
             lost.rpc_meta.value_or("");
}

}  // namespace mooncake::store
