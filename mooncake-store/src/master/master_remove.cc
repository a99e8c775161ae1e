// Removing single keys.
#include "mooncake-store/src/master/master_scratch.h"

namespace mooncake::store {

void Master::Handle(const BatchRemoveRequest& request, Instant now, BatchRemoveReply& reply) {
  if (!BeginReply(request, reply)) {
    return;
  }
  ScratchLease lease(*this);
  Scratch& scratch = *lease;
  CountCaller(request.caller);
  reply.codes.assign(request.keys.size(), StoreCode::kOk);
  Group(request, scratch);
  VisitShards(scratch, [&](Shard& shard,
                           std::span<const std::uint32_t> indices) MC_NO_THREAD_SAFETY_ANALYSIS {
    for (const std::uint32_t index : indices) {
      const Shard::Decision decision = shard.DecideRemove(
          {scratch.hashes[index], kDefaultTenant, request.keys[index]}, request.force, now);
      reply.codes[index] = decision.code;
      if (decision.event) {
        shard.Apply(*decision.event);
      }
    }
  });
  hub_.DrainIfGrown();
}

void Master::Handle(const BatchReplicaClearRequest& request, Instant now,
                    BatchReplicaClearReply& reply) {
  if (!BeginReply(request, reply)) {
    return;
  }
  ScratchLease lease(*this);
  Scratch& scratch = *lease;
  segments_.Refresh(scratch.view);
  std::vector<SegmentNumber> numbers;
  for (const auto& segment : scratch.view->by_number) {
    if (segment && segment->info.name == request.segment_name) {
      numbers.push_back(segment->identity.number);
    }
  }
  std::optional<std::span<const SegmentNumber>> segments;
  if (!request.segment_name.empty()) {
    segments = numbers;
  }
  reply.cleared.assign(request.keys.size(), 0);
  Group(request, scratch);
  VisitShards(scratch, [&](Shard& shard,
                           std::span<const std::uint32_t> indices) MC_NO_THREAD_SAFETY_ANALYSIS {
    for (const std::uint32_t index : indices) {
      const KeyRef key{scratch.hashes[index], kDefaultTenant, request.keys[index]};
      while (const auto event = shard.DecideClear(key, request.caller.client, segments, now)) {
        shard.Apply(*event);
        reply.cleared[index] = 1;
      }
    }
  });
  hub_.DrainIfGrown();
}

}  // namespace mooncake::store
