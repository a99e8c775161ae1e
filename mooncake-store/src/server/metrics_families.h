// The families behind MasterMetrics. Internal to metrics*.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mooncake-store/src/server/metrics.h"

namespace mooncake::store {

// A counter of the registry that repeats one kept elsewhere.
struct MirroredCounter {
  Counter& counter;
  const std::atomic<std::uint64_t>& source;
};
struct MirroredGauge {
  Gauge& gauge;
  const std::atomic<std::uint64_t>& source;
};

struct MasterMetrics::Families {
  Families(Registry& registry, const MasterCounters& counters);

  // ---- State, refreshed before it is read ----
  Gauge& allocated_bytes;
  Gauge& capacity_bytes;
  GaugeFamily& segment_allocated_bytes;
  GaugeFamily& segment_capacity_bytes;
  Gauge& active_clients;
  Gauge& quarantined_segments;

  // ---- Requests ----
  OperationCounters exist_key;
  OperationCounters put_start;
  Counter& put_start_alloc_failures;
  Counter& put_start_partial_allocations;
  OperationCounters put_end;
  OperationCounters put_revoke;
  OperationCounters get_replica_list;
  OperationCounters get_replica_list_by_regex;
  OperationCounters remove;
  OperationCounters remove_by_regex;
  OperationCounters remove_all;
  OperationCounters mount_segment;
  OperationCounters unmount_segment;
  OperationCounters remount_segment;
  OperationCounters ping;
  OperationCounters query_segments;
  OperationCounters report_failed_reads;
  BatchCounters batch_exist_key;
  BatchCounters batch_replica_clear;
  BatchCounters batch_get_replica_list;
  BatchCounters batch_put_start;
  BatchCounters batch_put_end;
  BatchCounters batch_put_revoke;
  Histogram& value_size_bytes;

  // ---- The RPC server ----
  Counter& rpc_requests;
  Counter& rpc_malformed;
  Counter& rpc_unknown_methods;
  Gauge& rpc_connections;
  CounterFamily& rpc_refused;  // By reason.

  std::vector<MirroredCounter> mirrored_counters;
  std::vector<MirroredGauge> mirrored_gauges;
};

}  // namespace mooncake::store
