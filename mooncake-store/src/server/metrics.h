// The master's metrics: what it counts itself (MasterCounters), what its RPCs count, and the state
// of the RPC server, under the names that the published dashboards query.
//
// One message is one batch here. A message about one key is counted as the published master counts
// its single operation (master_put_start_*), one about several as its batch operation
// (master_batch_put_start_*). A call that the client cut into windows counts once a window. Writes
// that end in failure count as put_revoke.
//
// Thread-safety: any thread. Counting costs a few relaxed atomic additions.
// Ownership:     borrows the master and the RPC server.
// Names:         docs/operations.md; kept in step by metrics_test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/metrics/registry.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-store/src/master/master.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

// An operation that succeeds or fails as a whole.
struct OperationCounters {
  Counter& requests;
  Counter& failures;

  void Add(StoreCode code) const {
    requests.Add();
    if (code != StoreCode::kOk) {
      failures.Add();
    }
  }
};

// An operation on several keys, each of which has an outcome of its own.
struct BatchCounters {
  Counter& requests;
  Counter& failures;           // No key succeeded.
  Counter& partial_successes;  // Some did.
  Counter& items;
  Counter& failed_items;

  void Add(std::uint64_t items_count, std::uint64_t failed_count) const;
};

class MasterMetrics {
 public:
  MasterMetrics(const Master& master, const rpc::RpcServer& rpc, const Clock& clock);
  ~MasterMetrics();
  MasterMetrics(const MasterMetrics&) = delete;
  MasterMetrics& operator=(const MasterMetrics&) = delete;

  // ---- Counting, one call a message (metrics_count.cc) ----
  void Count(const PingRequest& request, const PingReply& reply);
  void Count(const MountSegmentRequest& request, const MountSegmentReply& reply);
  void Count(const UnmountSegmentRequest& request, const UnmountSegmentReply& reply);
  void Count(const ReMountSegmentsRequest& request, const ReMountSegmentsReply& reply);
  void Count(const QuerySegmentsRequest& request, const QuerySegmentsReply& reply);
  void Count(const ReportFailedReadsRequest& request, const ReportFailedReadsReply& reply);
  void Count(const BatchExistRequest& request, const BatchExistReply& reply);
  void Count(const BatchGetReplicasRequest& request, const BatchGetReplicasReply& reply);
  void Count(const GetReplicasByRegexRequest& request, const GetReplicasByRegexReply& reply);
  void Count(const BatchPutStartRequest& request, const BatchPutStartReply& reply);
  void Count(const BatchPutEndRequest& request, const BatchPutEndReply& reply);
  void Count(const BatchRemoveRequest& request, const BatchRemoveReply& reply);
  void Count(const RemoveByRegexRequest& request, const RemoveManyReply& reply);
  void Count(const RemoveAllRequest& request, const RemoveManyReply& reply);
  void Count(const BatchReplicaClearRequest& request, const BatchReplicaClearReply& reply);
  void CountMalformed();

  // ---- Reading ----
  // All families in the text format of Prometheus.
  [[nodiscard]] std::string Expose() MC_EXCLUDES(refresh_mutex_);
  // One line for people: GET /metrics/summary and the log.
  [[nodiscard]] std::string Summary() const;
  [[nodiscard]] std::vector<std::string> Names() const { return registry_.Names(); }

 private:
  struct Families;

  // Brings what is kept elsewhere (master, segments, RPC server) into the registry.
  void Refresh() MC_REQUIRES(refresh_mutex_);

  const Master& master_;
  const rpc::RpcServer& rpc_;
  const Clock& clock_;
  Registry registry_;
  const std::unique_ptr<Families> families_;
  Mutex refresh_mutex_;
  // Names of the segments that the last Refresh() showed.
  std::vector<std::string> shown_segments_ MC_GUARDED_BY(refresh_mutex_);
};

}  // namespace mooncake::store
