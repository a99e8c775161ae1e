#include "mooncake-store/src/server/metrics.h"

#include <algorithm>
#include <array>
#include <map>

#include "mooncake-store/src/server/metrics_families.h"

namespace mooncake::store {

namespace {

constexpr std::array<std::uint64_t, 7> kValueSizeBounds{4096,      65536,      262144,    1048576,
                                                        4'194'304, 16'777'216, 67'108'864};

OperationCounters Operation(Registry& registry, const std::string& name, const std::string& what) {
  return {registry.AddCounter("master_" + name + "_requests_total", "Requests to " + what),
          registry.AddCounter("master_" + name + "_failures_total",
                              "Requests to " + what + " that failed")};
}

BatchCounters Batch(Registry& registry, const std::string& name, const std::string& what) {
  const std::string prefix = "master_batch_" + name;
  return {
      registry.AddCounter(prefix + "_requests_total", "Requests to " + what),
      registry.AddCounter(prefix + "_failures_total", "Those in which no key succeeded"),
      registry.AddCounter(prefix + "_partial_successes_total", "Those in which some keys failed"),
      registry.AddCounter(prefix + "_items_total", "Keys in requests to " + what),
      registry.AddCounter(prefix + "_failed_items_total", "Keys among them that failed")};
}

// "version mismatch" -> "version_mismatch".
std::string LabelOf(rpc::RpcClose reason) {
  std::string label(rpc::RpcCloseName(reason));
  std::ranges::replace(label, ' ', '_');
  return label;
}

// Names that dashboards query and that nothing counts in this build.
void AddUnusedFamilies(Registry& registry) {
  for (const char* name :
       {"master_nof_allocated_bytes", "master_total_nof_capacity_bytes",
        "master_allocated_file_size_bytes", "master_total_file_capacity_bytes", "file_cache_nums_",
        "master_promotion_in_flight", "ha_oplog_last_sequence_id", "ha_oplog_applied_sequence_id",
        "ha_oplog_standby_lag", "ha_oplog_pending_entries", "ha_pending_mutation_queue_size",
        "ha_standby_state"}) {
    registry.AddGauge(name, "Of a feature that is not part of this build; always 0");
  }
  for (const char* operation : {"copy_start", "copy_end", "copy_revoke", "move_start", "move_end",
                                "move_revoke", "evict_disk_replica", "create_copy_task",
                                "create_move_task", "update_task", "query_task", "fetch_tasks"}) {
    (void)Operation(registry, operation, "a feature that is not part of this build");
  }
  (void)Batch(registry, "query_ip", "a feature that is not part of this build");
  for (const char* name :
       {"file_cache_hit_nums_", "file_cache_hit_bytes_total", "master_promotion_admitted_total",
        "master_promotion_completed_total", "master_promotion_completed_bytes_total",
        "master_promotion_expired_total", "master_promotion_failed_total",
        "master_promotion_cancelled_total", "master_promotion_rejected_frequency_total",
        "master_promotion_rejected_watermark_total", "master_promotion_rejected_cap_total",
        "master_promotion_candidate_recorded_total", "master_promotion_candidate_admitted_total",
        "master_promotion_candidate_admission_rejected_total",
        "master_promotion_candidate_expired_evaluated_total",
        "master_promotion_candidate_expired_unevaluated_total",
        "master_promotion_candidate_dropped_limit_total"}) {
    registry.AddCounter(name, "Of a feature that is not part of this build; always 0");
  }
}

}  // namespace

void BatchCounters::Add(std::uint64_t items_count, std::uint64_t failed_count) const {
  requests.Add();
  items.Add(items_count);
  if (failed_count == 0) {
    return;
  }
  failed_items.Add(failed_count);
  (failed_count == items_count ? failures : partial_successes).Add();
}

MasterMetrics::Families::Families(Registry& registry, const MasterCounters& counters)
    : allocated_bytes(registry.AddGauge("master_allocated_bytes",
                                        "Bytes occupied on all readable memory segments")),
      capacity_bytes(registry.AddGauge("master_total_capacity_bytes",
                                       "Bytes that all readable memory segments have")),
      segment_allocated_bytes(registry.AddGaugeFamily(
          "segment_allocated_bytes", "Bytes occupied on a memory segment", {"segment"})),
      segment_capacity_bytes(registry.AddGaugeFamily(
          "segment_total_capacity_bytes", "Bytes that a memory segment has", {"segment"})),
      active_clients(registry.AddGauge("master_active_clients", "Clients that are alive")),
      quarantined_segments(registry.AddGauge(
          "master_quarantined_segments", "Segments hidden because clients could not read them")),
      exist_key(Operation(registry, "exist_key", "look up whether one key exists")),
      put_start(Operation(registry, "put_start", "begin a write of one key")),
      put_start_alloc_failures(registry.AddCounter("master_put_start_alloc_failures_total",
                                                   "Writes for which there was no space")),
      put_start_partial_allocations(
          registry.AddCounter("master_put_start_partial_allocations_total",
                              "Writes that got fewer replicas than were asked for")),
      put_end(Operation(registry, "put_end", "end a write of one key")),
      put_revoke(Operation(registry, "put_revoke", "give up a write of one key")),
      get_replica_list(Operation(registry, "get_replica_list", "locate one key")),
      get_replica_list_by_regex(
          Operation(registry, "get_replica_list_by_regex", "locate the keys of a pattern")),
      remove(Operation(registry, "remove", "remove a key, each key of a batch counted")),
      remove_by_regex(Operation(registry, "remove_by_regex", "remove the keys of a pattern")),
      remove_all(Operation(registry, "remove_all", "remove all keys")),
      mount_segment(Operation(registry, "mount_segment", "offer a segment")),
      unmount_segment(Operation(registry, "unmount_segment", "take a segment back")),
      remount_segment(Operation(registry, "remount_segment", "offer all segments again")),
      ping(Operation(registry, "ping", "stay alive")),
      query_segments(Operation(registry, "query_segments", "learn where segments are")),
      report_failed_reads(
          Operation(registry, "report_failed_reads", "report segments that cannot be read")),
      batch_exist_key(Batch(registry, "exist_key", "look up whether keys exist")),
      batch_replica_clear(Batch(registry, "replica_clear", "drop replicas of the caller's keys")),
      batch_get_replica_list(Batch(registry, "get_replica_list", "locate keys")),
      batch_put_start(Batch(registry, "put_start", "begin writes")),
      batch_put_end(Batch(registry, "put_end", "end writes")),
      batch_put_revoke(Batch(registry, "put_revoke", "give up writes")),
      value_size_bytes(registry.AddHistogram(
          "master_value_size_bytes", "Sizes of the objects whose writes began", kValueSizeBounds)),
      rpc_requests(registry.AddCounter("master_rpc_requests_total", "Requests of all kinds")),
      rpc_malformed(registry.AddCounter("master_rpc_malformed_requests_total",
                                        "Requests whose body could not be read")),
      rpc_unknown_methods(registry.AddCounter("master_rpc_unknown_methods_total",
                                              "Requests for a method that this version lacks")),
      rpc_connections(registry.AddGauge("master_rpc_connections", "Open RPC connections")),
      rpc_refused(registry.AddCounterFamily("master_rpc_refused_connections_total",
                                            "Connections ended because of what the peer sent",
                                            {"reason"})) {
  const auto counter = [&](const char* name, const char* help,
                           const std::atomic<std::uint64_t>& source) {
    mirrored_counters.push_back({registry.AddCounter(name, help), source});
  };
  const auto gauge = [&](const char* name, const char* help,
                         const std::atomic<std::uint64_t>& source) {
    mirrored_gauges.push_back({registry.AddGauge(name, help), source});
  };
  gauge("master_key_count", "Objects that can be read", counters.objects);
  gauge("master_soft_pin_key_count", "Objects that are soft-pinned", counters.soft_pinned_objects);
  gauge("mem_cache_nums_", "Objects in memory", counters.objects);
  gauge("master_hard_pinned_bytes", "Bytes that only their writer can free",
        counters.hard_pinned_bytes);
  gauge("master_in_flight_bytes", "Bytes given to writes that have not ended",
        counters.in_flight_bytes);
  gauge("master_metadata_bytes", "Memory that the master needs for objects, estimated",
        counters.metadata_bytes);
  gauge("master_put_start_discarded_staging_size",
        "Bytes of nobody that are not free again yet: failed writes may still arrive there, or "
        "leases have not ended",
        counters.resting_bytes);
  counter("mem_cache_hit_nums_", "Keys asked for with a get and found in memory",
          counters.get_hits);
  counter("mem_cache_hit_bytes_total", "Bytes of those", counters.hit_bytes);
  counter("valid_get_nums_", "Keys asked for with a get and found", counters.get_hits);
  counter("total_get_nums_", "Keys asked for with a get", counters.gets);
  counter("master_successful_evictions_total", "Evictions that freed what was needed",
          counters.evictions_successful);
  counter("master_attempted_evictions_total",
          "Evictions tried because a write found no space or no memory for its record",
          counters.evictions_attempted);
  counter("master_metadata_evictions_total",
          "Evictions tried because the memory for objects was at its limit",
          counters.evictions_for_metadata);
  counter("master_evicted_key_count", "Objects that were evicted", counters.evicted_objects);
  counter("master_evicted_size_bytes", "Bytes of those", counters.evicted_bytes);
  counter("master_put_start_discard_cnt", "Open writes that another one replaced",
          counters.puts_discarded);
  counter("master_put_start_release_cnt", "Open writes that were given up", counters.puts_released);
  counter("master_clients_expired_total", "Clients dropped because they fell silent",
          counters.clients_expired);
  counter("master_failed_read_reports_total", "Segments that clients reported as unreadable",
          counters.failed_read_reports);
  mirrored_counters.push_back({put_start_alloc_failures, counters.put_alloc_failures});
  mirrored_counters.push_back({put_start_partial_allocations, counters.put_partial_allocations});
  AddUnusedFamilies(registry);
}

MasterMetrics::MasterMetrics(const Master& master, const rpc::RpcServer& rpc, const Clock& clock)
    : master_(master),
      rpc_(rpc),
      clock_(clock),
      families_(std::make_unique<Families>(registry_, master.counters())) {}

MasterMetrics::~MasterMetrics() = default;

void MasterMetrics::Refresh() {
  // Counters only grow, so what is missing is what came since; one refresh at a time.
  const auto bring = [](Counter& counter, std::uint64_t value) {
    const std::uint64_t shown = counter.Value();
    if (value > shown) {
      counter.Add(value - shown);
    }
  };
  Families& families = *families_;
  for (const auto& [counter, source] : families.mirrored_counters) {
    bring(counter, source.load(std::memory_order_relaxed));
  }
  for (const auto& [gauge, source] : families.mirrored_gauges) {
    gauge.Set(static_cast<std::int64_t>(source.load(std::memory_order_relaxed)));
  }
  const Master::Usage usage = master_.MeasureUsage();
  families.allocated_bytes.Set(static_cast<std::int64_t>(usage.used_bytes));
  families.capacity_bytes.Set(static_cast<std::int64_t>(usage.capacity_bytes));
  families.active_clients.Set(static_cast<std::int64_t>(master_.client_count()));

  std::map<std::string, Master::Usage> by_name;  // Several segments may share one.
  std::int64_t quarantined = 0;
  for (const SegmentReport& report : master_.ReportSegments(clock_.Now())) {
    Master::Usage& sum = by_name[report.segment.info.name];
    sum.used_bytes += report.used_bytes;
    sum.capacity_bytes += report.capacity_bytes;
    quarantined += report.quarantined ? 1 : 0;
  }
  families.quarantined_segments.Set(quarantined);
  for (const std::string& name : shown_segments_) {
    if (!by_name.contains(name)) {
      families.segment_allocated_bytes.Remove({name});
      families.segment_capacity_bytes.Remove({name});
    }
  }
  shown_segments_.clear();
  for (const auto& [name, sum] : by_name) {
    families.segment_allocated_bytes.With({name}).Set(static_cast<std::int64_t>(sum.used_bytes));
    families.segment_capacity_bytes.With({name}).Set(static_cast<std::int64_t>(sum.capacity_bytes));
    shown_segments_.push_back(name);
  }

  const rpc::RpcServerStats stats = rpc_.stats();
  bring(families.rpc_requests, stats.requests);
  bring(families.rpc_unknown_methods, stats.unknown_methods);
  families.rpc_connections.Set(static_cast<std::int64_t>(stats.open));
  for (const rpc::RpcClose reason :
       {rpc::RpcClose::kMalformedFrame, rpc::RpcClose::kHelloExpected, rpc::RpcClose::kHelloTimeout,
        rpc::RpcClose::kVersionMismatch, rpc::RpcClose::kWrongToken}) {
    bring(families.rpc_refused.With({LabelOf(reason)}), stats.closed_for(reason));
  }
}

std::string MasterMetrics::Expose() {
  const MutexLock lock(refresh_mutex_);
  Refresh();
  return registry_.Expose();
}

}  // namespace mooncake::store
