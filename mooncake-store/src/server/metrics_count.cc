// What each message counts as.
#include <algorithm>

#include "mooncake-store/src/server/metrics_families.h"

namespace mooncake::store {

namespace {

// A batch in which `failed` of `items` keys failed; one key counts as the single operation.
void CountKeys(const OperationCounters& single, const BatchCounters& batch, std::uint64_t items,
               std::uint64_t failed) {
  if (items == 1) {
    single.Add(failed == 0 ? StoreCode::kOk : StoreCode::kInternalError);
  } else {
    batch.Add(items, failed);
  }
}

}  // namespace

void MasterMetrics::Count(const PingRequest&, const PingReply& reply) {
  families_->ping.Add(reply.code);
}

void MasterMetrics::Count(const MountSegmentRequest&, const MountSegmentReply& reply) {
  families_->mount_segment.Add(reply.code);
}

void MasterMetrics::Count(const UnmountSegmentRequest&, const UnmountSegmentReply& reply) {
  families_->unmount_segment.Add(reply.code);
}

void MasterMetrics::Count(const ReMountSegmentsRequest&, const ReMountSegmentsReply& reply) {
  const auto failed = std::ranges::find_if(reply.segments, [](const MountSegmentReply& segment) {
    return segment.code != StoreCode::kOk;
  });
  families_->remount_segment.Add(
      reply.code == StoreCode::kOk && failed != reply.segments.end() ? failed->code : reply.code);
}

void MasterMetrics::Count(const QuerySegmentsRequest&, const QuerySegmentsReply& reply) {
  families_->query_segments.Add(reply.code);
}

void MasterMetrics::Count(const ReportFailedReadsRequest&, const ReportFailedReadsReply& reply) {
  families_->report_failed_reads.Add(reply.code);
}

// That a key is missing is an answer here, not a failure.
void MasterMetrics::Count(const BatchExistRequest& request, const BatchExistReply& reply) {
  const std::uint64_t keys = request.keys.size();
  CountKeys(families_->exist_key, families_->batch_exist_key, keys,
            reply.code == StoreCode::kOk ? 0 : keys);
}

void MasterMetrics::Count(const BatchGetReplicasRequest& request,
                          const BatchGetReplicasReply& reply) {
  const std::uint64_t keys = request.keys.size();
  const auto failed = reply.code != StoreCode::kOk
                          ? keys
                          : static_cast<std::uint64_t>(std::ranges::count_if(
                                reply.objects, [](const ObjectLocation& location) {
                                  return location.code != StoreCode::kOk;
                                }));
  CountKeys(families_->get_replica_list, families_->batch_get_replica_list, keys, failed);
}

void MasterMetrics::Count(const GetReplicasByRegexRequest&, const GetReplicasByRegexReply& reply) {
  families_->get_replica_list_by_regex.Add(reply.code);
}

void MasterMetrics::Count(const BatchPutStartRequest& request, const BatchPutStartReply& reply) {
  const std::uint64_t keys = request.keys.size();
  std::uint64_t failed = keys;
  if (reply.code == StoreCode::kOk) {
    failed = 0;
    for (std::size_t index = 0; index < reply.results.size(); ++index) {
      if (reply.results[index].code == StoreCode::kOk) {
        families_->value_size_bytes.Observe(request.sizes_bytes[index]);
      } else {
        ++failed;
      }
    }
  }
  CountKeys(families_->put_start, families_->batch_put_start, keys, failed);
}

void MasterMetrics::Count(const BatchPutEndRequest& request, const BatchPutEndReply& reply) {
  std::uint64_t ended = 0;
  std::uint64_t ended_failed = 0;
  std::uint64_t revoked = 0;
  std::uint64_t revoked_failed = 0;
  for (std::size_t index = 0; index < request.endings.size(); ++index) {
    const bool failed = reply.code != StoreCode::kOk || index >= reply.codes.size() ||
                        reply.codes[index] != StoreCode::kOk;
    if (request.endings[index].success) {
      ++ended;
      ended_failed += failed ? 1 : 0;
    } else {
      ++revoked;
      revoked_failed += failed ? 1 : 0;
    }
  }
  if (ended != 0) {
    CountKeys(families_->put_end, families_->batch_put_end, ended, ended_failed);
  }
  if (revoked != 0) {
    CountKeys(families_->put_revoke, families_->batch_put_revoke, revoked, revoked_failed);
  }
}

void MasterMetrics::Count(const BatchRemoveRequest& request, const BatchRemoveReply& reply) {
  const std::uint64_t keys = request.keys.size();
  families_->remove.requests.Add(keys);
  families_->remove.failures.Add(
      reply.code != StoreCode::kOk
          ? keys
          : keys - static_cast<std::uint64_t>(std::ranges::count(reply.codes, StoreCode::kOk)));
}

void MasterMetrics::Count(const RemoveByRegexRequest&, const RemoveManyReply& reply) {
  families_->remove_by_regex.Add(reply.code);
}

void MasterMetrics::Count(const RemoveAllRequest&, const RemoveManyReply& reply) {
  families_->remove_all.Add(reply.code);
}

void MasterMetrics::Count(const BatchReplicaClearRequest& request,
                          const BatchReplicaClearReply& reply) {
  const std::uint64_t keys = request.keys.size();
  families_->batch_replica_clear.Add(
      keys, keys - static_cast<std::uint64_t>(std::ranges::count(reply.cleared, 1)));
}

void MasterMetrics::CountMalformed() { families_->rpc_malformed.Add(); }

}  // namespace mooncake::store
