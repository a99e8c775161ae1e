// Every flag of mooncake_master with its default; setting_table.cc says what is allowed.
#include "mooncake-store/src/server/flags.h"

#include <fmt/format.h>
#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "mooncake-common/src/base/text.h"
#include "mooncake-store/src/server/version.h"

// NOLINTBEGIN: the macros make names and globals of their own.
DEFINE_string(config_path, "",
              "Configuration file, .yaml, .yml or .json; flags that are given win");
DEFINE_int32(rpc_port, 0, "Port of the RPC server; 0: the value of --port");
DEFINE_int32(port, 50051, "Port of the RPC server where --rpc_port is 0 (deprecated)");
DEFINE_string(rpc_address, "0.0.0.0", "Address that the RPC server listens on");
DEFINE_string(rpc_interface, "",
              "Network interface whose address the RPC server listens on; wins over --rpc_address");
DEFINE_int32(rpc_thread_num, 0, "Threads of the RPC server; 0: one a core, at most --max_threads");
DEFINE_int32(max_threads, 16,
             "Most threads of the RPC server where --rpc_thread_num is 0 (deprecated)");
DEFINE_int32(rpc_conn_timeout_seconds, 0,
             "Seconds after which an idle RPC connection ends; 0: never");
DEFINE_bool(rpc_enable_tcp_no_delay, true, "Send RPC answers without delay");
DEFINE_string(metrics_host, "0.0.0.0", "Address that the admin HTTP server listens on");
DEFINE_int32(metrics_port, 9003, "Port of the admin HTTP server; 0: any free one");
DEFINE_bool(enable_metric_reporting, true,
            "Write a line with the metrics to the log every ten seconds in which they changed");
DEFINE_bool(enable_http_metadata_server, false,
            "Serve the transfer engine's metadata over HTTP, too");
DEFINE_string(http_metadata_server_host, "0.0.0.0", "Address that the metadata server listens on");
DEFINE_int32(http_metadata_server_port, 8080, "Port of the metadata server; 0: any free one");
DEFINE_bool(enable_metadata_cleanup_on_timeout, false,
            "Remove the descriptors of a client that was lost from the metadata server");
DEFINE_string(default_kv_lease_ttl, "10000",
              "How long a lookup protects an object: milliseconds, or a number with ms, s, m or h");
DEFINE_string(default_kv_soft_pin_ttl, "1800000",
              "How long a soft pin lasts if its writer names no time: milliseconds, or a number "
              "with ms, s, m or h");
DEFINE_string(
    max_kv_soft_pin_ttl, "86400000",
    "Longest soft pin that a writer may ask for: milliseconds, or a number with ms, s, m or h");
DEFINE_int64(client_ttl, 10, "Seconds of silence after which a client and its memory are dropped");
DEFINE_uint64(put_start_discard_timeout_sec, 30,
              "Seconds after which a write that has not ended may be replaced by another");
DEFINE_uint64(put_start_release_timeout_sec, 600,
              "Seconds after which the space of a write that has not ended is used again");
DEFINE_bool(allow_evict_soft_pinned_objects, true,
            "Evict soft-pinned objects when nothing else may go");
DEFINE_double(eviction_ratio, 0.05,
              "Share of all memory, 0 to 1: the most that one eviction frees beyond its need");
DEFINE_string(
    metadata_memory_limit, "0",
    "Most memory that the master needs for objects, as it estimates it, from which a write "
    "evicts: bytes, or a number with KB, MB, GB or TB; 0: no limit");
DEFINE_string(eviction_policy, "hdi",
              "Who is evicted: hdi, which learns what returns and when, and drops chains of keys "
              "from their ends; or lru, the least recently used");
DEFINE_double(eviction_high_watermark_ratio, 0.90,
              "Share of memory in use, 0 to 1, from which eviction starts");
DEFINE_string(allocation_strategy, "random",
              "Which segments a new object prefers: random, free_ratio_first or local_first");
DEFINE_string(memory_allocator, "offset", "Allocator of segments: offset or cachelib");
DEFINE_bool(enable_ha, false, "Several masters, one of which leads");
DEFINE_string(ha_backend_type, "etcd", "What elects the leader");
DEFINE_string(ha_backend_connstring, "", "Where that is");
DEFINE_string(etcd_endpoints, "", "Addresses of etcd, separated by semicolons");
DEFINE_string(cluster_id, "mooncake_cluster", "Name of the cluster whose leader is elected");
DEFINE_bool(enable_oplog, false, "Send changes of metadata to standby masters");
DEFINE_int32(oplog_poll_interval_ms, 1000,
             "Milliseconds between two looks of a standby for changes");
DEFINE_uint32(oplog_batch_max_entries, 1024, "Most changes written together");
DEFINE_uint32(batch_oplog_retry_timeout_sec, 180,
              "Seconds for which a failed write of changes is tried again");
DEFINE_string(pod_name, "", "Name of the Kubernetes pod this runs in");
DEFINE_string(pod_namespace, "", "Namespace of that pod");
DEFINE_double(nof_eviction_ratio, 0.05,
              "Share of the NVMe-oF pool, 0 to 1, that one eviction frees");
DEFINE_double(nof_eviction_high_watermark_ratio, 0.90,
              "Share of the NVMe-oF pool in use, 0 to 1, from which eviction starts");
DEFINE_int64(nof_heartbeat_interval_sec, 10, "Seconds between two probes of an NVMe-oF segment");
DEFINE_uint32(nof_heartbeat_probe_timeout_ms, 1000, "Milliseconds that a probe may take");
DEFINE_uint32(nof_heartbeat_failures_threshold, 3,
              "Failed probes after which an NVMe-oF segment is dropped");
DEFINE_string(root_fs_dir, "", "Folder of a shared file system that objects are kept in, too");
DEFINE_int64(global_file_segment_size, std::numeric_limits<std::int64_t>::max(),
             "Most bytes there");
DEFINE_bool(enable_disk_eviction, true, "Evict objects from that folder");
DEFINE_uint64(quota_bytes, 0, "Most bytes that eviction leaves there; 0: its own choice");
DEFINE_bool(enable_offload, false, "Copy objects to the local disks of clients");
DEFINE_bool(offload_on_evict, false, "Copy objects there only when they leave memory");
DEFINE_bool(offload_force_evict, false, "Evict from memory without waiting for the copy");
DEFINE_uint64(offloading_queue_limit, 50000, "Most objects that wait to be copied, 1 to 100000000");
DEFINE_double(offload_cap_ratio, 0.5, "Share of a client's disk, 0 to 1, that may be used");
DEFINE_bool(promotion_on_hit, false, "Bring an object back to memory when it is read from disk");
DEFINE_uint32(promotion_admission_threshold, 2, "Reads after which that is done");
DEFINE_uint32(promotion_queue_limit, 50000, "Most objects that wait for it");
DEFINE_uint32(promotion_max_per_heartbeat, 1,
              "Most objects that one client brings back a heartbeat");
DEFINE_string(dynamic_replication_mode, "off",
              "Replicate what is read often: off, observe or enforce");
DEFINE_uint32(dynamic_replication_heat_window_seconds, 10,
              "Seconds over which reads are counted for that");
DEFINE_double(dynamic_replication_admission_qps_threshold, 0.8,
              "Reads a second from which an object is replicated, above 0");
DEFINE_uint64(dynamic_replication_max_memory_replicas, 2,
              "Most replicas in memory that this makes");
DEFINE_bool(enable_multi_tenants, false, "Keep tenants apart, each with a quota");
DEFINE_string(tenant_quota_connector_type, "file", "What keeps the quotas");
DEFINE_string(tenant_quota_connector_uri, "", "Where that is");
DEFINE_bool(enable_kv_events, false, "Publish which objects come and go");
DEFINE_string(kv_events_bind_endpoint, "", "Endpoint on which they are published");
DEFINE_string(kv_events_backend_id, "", "Name of this cache in them");
DEFINE_bool(kv_events_emit_legacy_compat, true, "Publish the older form, too");
DEFINE_bool(kv_events_emit_object_key, true, "Publish keys");
DEFINE_uint32(kv_events_queue_capacity, 65536, "Most events that wait for a slow subscriber");
DEFINE_string(kv_events_model_name, "", "Accepted, ignored");
DEFINE_string(kv_events_tenant_id, "default", "Accepted, ignored");
DEFINE_string(kv_events_additional_salt, "", "Accepted, ignored");
DEFINE_string(kv_events_lora_name, "", "Accepted, ignored");
DEFINE_uint32(kv_events_block_size, 0, "Accepted, ignored");
DEFINE_uint32(kv_events_dp_rank, 0, "Accepted, ignored");
DEFINE_bool(enable_snapshot, false, "Write all metadata to a file now and then");
DEFINE_bool(enable_snapshot_restore, false, "Read the last snapshot at the start");
DEFINE_string(snapshot_backup_dir, "",
              "Folder for snapshots that could not be written where they belong");
DEFINE_uint64(snapshot_interval_seconds, 600, "Seconds between two snapshots");
DEFINE_uint64(snapshot_child_timeout_seconds, 300, "Seconds that one snapshot may take");
DEFINE_uint32(snapshot_retention_count, 2, "How many are kept");
DEFINE_string(snapshot_object_store_type, "", "What keeps snapshots");
DEFINE_string(snapshot_payload_store_type, "", "The same as --snapshot_object_store_type");
DEFINE_string(snapshot_payload_backend_type, "", "The same as --snapshot_object_store_type");
DEFINE_string(snapshot_catalog_store_type, "", "What keeps the list of snapshots");
DEFINE_string(snapshot_catalog_backend_type, "", "The same as --snapshot_catalog_store_type");
DEFINE_string(snapshot_catalog_store_connstring, "", "Where that is");
DEFINE_string(snapshot_catalog_backend_connstring, "",
              "The same as --snapshot_catalog_store_connstring");
DEFINE_uint32(max_total_finished_tasks, 10000,
              "Most finished copy and move tasks that are remembered");
DEFINE_uint32(max_total_pending_tasks, 10000, "Most such tasks that wait");
DEFINE_uint32(max_total_processing_tasks, 10000, "Most such tasks under way");
DEFINE_uint64(pending_task_timeout_sec, 300,
              "Seconds after which a waiting task is given up; 0: never");
DEFINE_uint64(processing_task_timeout_sec, 300,
              "Seconds after which a task under way is given up; 0: never");
DEFINE_uint32(max_retry_attempts, 10, "How often a task is tried");
DEFINE_bool(enable_cxl, false, "Offer a CXL memory device as a segment");
DEFINE_string(cxl_path, "/dev/dax0.0", "That device");
DEFINE_uint64(cxl_size, 8589934592, "Its bytes");
// NOLINTEND

namespace mooncake::store {

Result<void> ParseCommandLine(int argc, char** argv) {
  gflags::SetUsageMessage(
      "keeps the metadata of a store: which objects there are and where their bytes lie.\n"
      "  mooncake_master [--rpc_port=50051] [--metrics_port=9003] [--config_path=master.yaml] ...");
  gflags::SetVersionString(fmt::format("{} (git: {})", Version(), GitHash()));
  gflags::ParseCommandLineNonHelpFlags(&argc, &argv, /*remove_flags=*/true);
  std::string version;
  if (gflags::GetCommandLineOption("version", &version) && version == "true") {
    // Not gflags's own: its line begins with the path under which the program was called.
    std::printf("mooncake_master version %s\n", gflags::VersionString());
    std::exit(EXIT_SUCCESS);
  }
  gflags::HandleCommandLineHelpFlags();
  if (argc > 1) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("argument {} is no flag; flags look like --rpc_port=50051, see --help",
                            Quote(argv[1])));
  }
  return {};
}

FlagValues ReadFlags() {
  std::vector<gflags::CommandLineFlagInfo> all;
  gflags::GetAllFlags(&all);
  FlagValues values;
  for (const gflags::CommandLineFlagInfo& flag : all) {
    values[flag.name] = {
        .text = flag.current_value, .default_text = flag.default_value, .given = !flag.is_default};
  }
  return values;
}

std::string ConfigPath() { return FLAGS_config_path; }

}  // namespace mooncake::store
