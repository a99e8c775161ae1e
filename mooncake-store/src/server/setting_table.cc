// The table of all settings. Defaults and help stand with the flags (flags.cc); flags_test keeps
// the two in step.
#include <array>

#include "mooncake-store/src/server/settings.h"

namespace mooncake::store {

namespace {

constexpr double kMaxPort = 65535;
constexpr double kMaxSeconds = 100'000'000;  // Three years.
constexpr double kMaxCount = 4'294'967'295;
constexpr double kMaxBytes = 18'446'744'073'709'549'568.0;  // The largest double below 2^64.

constexpr std::string_view kNoHa = "this build has no standby masters";
constexpr std::string_view kNoDisk = "this build keeps objects in memory only";
constexpr std::string_view kNoNof = "this build has no NVMe-oF pool";
constexpr std::string_view kNoTenants = "this build has no tenants";
constexpr std::string_view kNoReplication = "this build makes no replicas by itself";
constexpr std::string_view kNoEvents = "this build publishes no KV events";
constexpr std::string_view kNoSnapshot = "this build writes no snapshots";
constexpr std::string_view kNoTasks = "this build has no copy or move tasks";
constexpr std::string_view kNoCxl = "this build has no CXL memory";
constexpr std::string_view kIgnored = "accepted for compatibility";

constexpr Setting Used(std::string_view name, SettingKind kind, double low = 0, double high = 0) {
  return {.name = name, .kind = kind, .low = low, .high = high};
}
constexpr Setting Unused(std::string_view name, SettingKind kind, std::string_view why,
                         double low = 0, double high = 0) {
  return {.name = name, .kind = kind, .low = low, .high = high, .without_effect = why};
}
constexpr Setting Choice(std::string_view name, std::string_view choices,
                         std::string_view why = {}) {
  return {.name = name, .kind = SettingKind::kChoice, .choices = choices, .without_effect = why};
}

using enum SettingKind;

constexpr auto kSettings = std::to_array<Setting>({
    // Where it serves.
    Used("rpc_port", kInteger, 0, kMaxPort),
    Used("port", kInteger, 0, kMaxPort),
    Used("rpc_address", kText),
    Used("rpc_interface", kText),
    Used("rpc_thread_num", kInteger, 0, 1024),
    Used("max_threads", kInteger, 1, 1024),
    Unused("rpc_conn_timeout_seconds", kInteger,
           "idle connections are kept; those of dead peers end with the connection", 0,
           kMaxSeconds),
    Unused("rpc_enable_tcp_no_delay", kFlag, "RPC answers are never delayed"),
    Used("metrics_host", kText),
    Used("metrics_port", kInteger, 0, kMaxPort),
    Used("enable_metric_reporting", kFlag),
    Used("enable_http_metadata_server", kFlag),
    Used("http_metadata_server_host", kText),
    Used("http_metadata_server_port", kInteger, 0, kMaxPort),
    Used("enable_metadata_cleanup_on_timeout", kFlag),
    // How long things last.
    Used("default_kv_lease_ttl", kDuration),
    Used("default_kv_soft_pin_ttl", kDuration),
    Used("max_kv_soft_pin_ttl", kDuration),
    {.name = "client_ttl",
     .kind = kInteger,
     .low = 1,
     .high = kMaxSeconds,
     .config_key = "client_live_ttl_sec"},
    Used("put_start_discard_timeout_sec", kInteger, 0, kMaxSeconds),
    Used("put_start_release_timeout_sec", kInteger, 0, kMaxSeconds),
    // Space and eviction.
    Used("allow_evict_soft_pinned_objects", kFlag),
    Used("eviction_ratio", kNumber, 0, 1),
    Used("metadata_memory_limit", kByteSize),
    Choice("eviction_policy", "hdi|lru"),
    Unused("eviction_high_watermark_ratio", kNumber,
           "memory is evicted on the spot when a write needs it, never ahead of need", 0, 1),
    {.name = "allocation_strategy",
     .kind = kChoice,
     .choices = "random|free_ratio_first|local_first|cxl|ssd_free_ratio_first",
     .unbuilt = "cxl|ssd_free_ratio_first"},
    Choice("memory_allocator", "offset|cachelib",
           "one allocator serves all sizes of objects and segments"),
    // Features that are not built: accepted, so that command lines keep working.
    Unused("enable_ha", kFlag, kNoHa),
    Unused("ha_backend_type", kText, kNoHa),
    Unused("ha_backend_connstring", kText, kNoHa),
    Unused("etcd_endpoints", kText, kNoHa),
    Unused("cluster_id", kText, kNoHa),
    Unused("enable_oplog", kFlag, kNoHa),
    Unused("oplog_poll_interval_ms", kInteger, kNoHa, 0, kMaxCount),
    Unused("oplog_batch_max_entries", kInteger, kNoHa, 1, kMaxCount),
    Unused("batch_oplog_retry_timeout_sec", kInteger, kNoHa, 0, kMaxSeconds),
    Unused("pod_name", kText, kNoHa),
    Unused("pod_namespace", kText, kNoHa),
    Unused("nof_eviction_ratio", kNumber, kNoNof, 0, 1),
    Unused("nof_eviction_high_watermark_ratio", kNumber, kNoNof, 0, 1),
    Unused("nof_heartbeat_interval_sec", kInteger, kNoNof, 1, kMaxSeconds),
    Unused("nof_heartbeat_probe_timeout_ms", kInteger, kNoNof, 1, kMaxCount),
    Unused("nof_heartbeat_failures_threshold", kInteger, kNoNof, 1, kMaxCount),
    Unused("root_fs_dir", kText, kNoDisk),
    Unused("global_file_segment_size", kInteger, kNoDisk, 0, kMaxBytes),
    Unused("enable_disk_eviction", kFlag, kNoDisk),
    Unused("quota_bytes", kInteger, kNoDisk, 0, kMaxBytes),
    Unused("enable_offload", kFlag, kNoDisk),
    Unused("offload_on_evict", kFlag, kNoDisk),
    Unused("offload_force_evict", kFlag, kNoDisk),
    Unused("offloading_queue_limit", kInteger, kNoDisk, 1, 100'000'000),
    Unused("offload_cap_ratio", kNumber, kNoDisk, 0, 1),
    Unused("promotion_on_hit", kFlag, kNoDisk),
    Unused("promotion_admission_threshold", kInteger, kNoDisk, 0, kMaxCount),
    Unused("promotion_queue_limit", kInteger, kNoDisk, 0, kMaxCount),
    Unused("promotion_max_per_heartbeat", kInteger, kNoDisk, 0, kMaxCount),
    Choice("dynamic_replication_mode", "off|observe|enforce", kNoReplication),
    Unused("dynamic_replication_heat_window_seconds", kInteger, kNoReplication, 1, kMaxSeconds),
    Unused("dynamic_replication_admission_qps_threshold", kNumber, kNoReplication, 1e-9, 1e12),
    Unused("dynamic_replication_max_memory_replicas", kInteger, kNoReplication, 1, kMaxCount),
    Unused("enable_multi_tenants", kFlag, kNoTenants),
    Unused("tenant_quota_connector_type", kText, kNoTenants),
    Unused("tenant_quota_connector_uri", kText, kNoTenants),
    Unused("enable_kv_events", kFlag, kNoEvents),
    Unused("kv_events_bind_endpoint", kText, kNoEvents),
    Unused("kv_events_backend_id", kText, kNoEvents),
    Unused("kv_events_emit_legacy_compat", kFlag, kNoEvents),
    Unused("kv_events_emit_object_key", kFlag, kNoEvents),
    Unused("kv_events_queue_capacity", kInteger, kNoEvents, 1, kMaxCount),
    Unused("kv_events_model_name", kText, kIgnored),
    Unused("kv_events_tenant_id", kText, kIgnored),
    Unused("kv_events_additional_salt", kText, kIgnored),
    Unused("kv_events_lora_name", kText, kIgnored),
    Unused("kv_events_block_size", kInteger, kIgnored, 0, kMaxCount),
    Unused("kv_events_dp_rank", kInteger, kIgnored, 0, kMaxCount),
    Unused("enable_snapshot", kFlag, kNoSnapshot),
    Unused("enable_snapshot_restore", kFlag, kNoSnapshot),
    Unused("snapshot_backup_dir", kText, kNoSnapshot),
    Unused("snapshot_interval_seconds", kInteger, kNoSnapshot, 1, kMaxSeconds),
    Unused("snapshot_child_timeout_seconds", kInteger, kNoSnapshot, 1, kMaxSeconds),
    Unused("snapshot_retention_count", kInteger, kNoSnapshot, 1, kMaxCount),
    Unused("snapshot_object_store_type", kText, kNoSnapshot),
    Unused("snapshot_payload_store_type", kText, kNoSnapshot),
    Unused("snapshot_payload_backend_type", kText, kNoSnapshot),
    Unused("snapshot_catalog_store_type", kText, kNoSnapshot),
    Unused("snapshot_catalog_backend_type", kText, kNoSnapshot),
    Unused("snapshot_catalog_store_connstring", kText, kNoSnapshot),
    Unused("snapshot_catalog_backend_connstring", kText, kNoSnapshot),
    Unused("max_total_finished_tasks", kInteger, kNoTasks, 0, kMaxCount),
    Unused("max_total_pending_tasks", kInteger, kNoTasks, 0, kMaxCount),
    Unused("max_total_processing_tasks", kInteger, kNoTasks, 0, kMaxCount),
    Unused("pending_task_timeout_sec", kInteger, kNoTasks, 0, kMaxSeconds),
    Unused("processing_task_timeout_sec", kInteger, kNoTasks, 0, kMaxSeconds),
    Unused("max_retry_attempts", kInteger, kNoTasks, 0, kMaxCount),
    Unused("enable_cxl", kFlag, kNoCxl),
    Unused("cxl_path", kText, kNoCxl),
    Unused("cxl_size", kInteger, kNoCxl, 0, kMaxBytes),
});

}  // namespace

std::span<const Setting> AllSettings() { return kSettings; }

}  // namespace mooncake::store
