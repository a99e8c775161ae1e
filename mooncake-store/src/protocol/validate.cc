#include "mooncake-store/src/protocol/validate.h"

#include <string>

namespace mooncake::store {

namespace {

std::unexpected<Error> Malformed(const char* what) {
  return Fail(ErrorCode::kMalformed, std::string("a store message contradicts itself: ") + what);
}

// A caller that cuts no call leaves position and total at zero. The sum has more bits than the
// numbers: two of them may add up to nothing.
Result<void> CheckChain(const ChainPosition& chain, std::size_t keys) {
  const bool alone = chain.position == 0 && chain.total == 0;
  if (!alone && std::uint64_t{chain.position} + keys > chain.total) {
    return Malformed("its keys lie outside the call that they belong to");
  }
  return {};
}

Result<void> CheckSpan(std::uint64_t span_ms) {
  return span_ms <= kMaxSpanMs ? Result<void>{} : Malformed("a time longer than any may be");
}

// True if [first, first + count) lies within `size` entries.
bool Within(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
  return first <= size && count <= size - first;
}

template <typename Entry>
Result<void> CheckReplicas(const ReplicaTable& table, const std::vector<Entry>& entries) {
  for (const Extent& extent : table.extents) {
    if (extent.length_bytes == 0) {
      return Malformed("an empty extent");
    }
  }
  for (const Replica& replica : table.replicas) {
    if ((replica.type == ReplicaType::kMemory && replica.extent_count == 0) ||
        !Within(replica.first_extent, replica.extent_count, table.extents.size())) {
      return Malformed("a replica without its extents");
    }
  }
  for (const Entry& entry : entries) {
    if (!Within(entry.replicas.first, entry.replicas.count, table.replicas.size())) {
      return Malformed("an object without its replicas");
    }
  }
  return {};
}

}  // namespace

Result<void> Validate(const QuerySegmentsRequest& request) {
  return request.numbers.size() <= kMaxKeysPerBatch
             ? Result<void>{}
             : Malformed("more segments than a message may have");
}

Result<void> Validate(const BatchExistRequest& request) {
  return CheckChain(request.chain, request.keys.size());
}

Result<void> Validate(const BatchGetReplicasRequest& request) {
  return CheckChain(request.chain, request.keys.size());
}

Result<void> Validate(const BatchPutStartRequest& request) {
  if (request.sizes_bytes.size() != request.keys.size()) {
    return Malformed("not one size a key");
  }
  return CheckChain(request.chain, request.keys.size());
}

Result<void> Validate(const BatchPutEndRequest& request) {
  return request.endings.size() == request.keys.size() ? Result<void>{}
                                                       : Malformed("not one ending a key");
}

Result<void> Validate(const PingReply& reply) { return CheckSpan(reply.client_ttl_ms); }

Result<void> Validate(const BatchExistReply& reply) { return CheckSpan(reply.lease_ttl_ms); }

Result<void> Validate(const BatchGetReplicasReply& reply) {
  MC_TRY(CheckSpan(reply.lease_ttl_ms));
  return CheckReplicas(reply.table, reply.objects);
}

Result<void> Validate(const GetReplicasByRegexReply& reply) {
  if (reply.keys.size() != reply.objects.size()) {
    return Malformed("not one object a key");
  }
  MC_TRY(CheckSpan(reply.lease_ttl_ms));
  return CheckReplicas(reply.table, reply.objects);
}

Result<void> Validate(const BatchPutStartReply& reply) {
  MC_TRY(CheckSpan(reply.full.retry_after_ms));
  return CheckReplicas(reply.table, reply.results);
}

}  // namespace mooncake::store
