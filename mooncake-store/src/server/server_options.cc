#include "mooncake-store/src/server/server_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "mooncake-store/src/master/eviction/policies.h"

namespace mooncake::store {

namespace {

Duration Seconds(const Settings& settings, std::string_view name) {
  return std::chrono::seconds(settings.Integer(name));
}

std::uint16_t Port(const Settings& settings, std::string_view name) {
  return static_cast<std::uint16_t>(settings.Integer(name));
}

AllocationStrategy StrategyFrom(std::string_view name) {
  if (name == "free_ratio_first") {
    return AllocationStrategy::kFreeRatioFirst;
  }
  if (name == "local_first") {
    return AllocationStrategy::kLocalFirst;
  }
  return AllocationStrategy::kRandom;
}

// `low` must not be above `high`.
Result<void> CheckOrder(const Settings& settings, std::string_view low, Duration low_value,
                        std::string_view high, Duration high_value) {
  if (low_value > high_value) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} = {} is not allowed: it must not be above {} = {}", settings.Origin(low),
                    settings.Text(low), settings.Origin(high), settings.Text(high)));
  }
  return {};
}

}  // namespace

Result<ServerOptions> ServerOptionsFrom(const Settings& settings, std::size_t cores) {
  ServerOptions options;
  MasterOptions& master = options.master;
  master.lease_ttl = settings.Time("default_kv_lease_ttl");
  master.soft_pin_ttl = settings.Time("default_kv_soft_pin_ttl");
  master.max_soft_pin_ttl = settings.Time("max_kv_soft_pin_ttl");
  MC_TRY(CheckOrder(settings, "default_kv_soft_pin_ttl", master.soft_pin_ttl, "max_kv_soft_pin_ttl",
                    master.max_soft_pin_ttl));
  master.client_ttl = Seconds(settings, "client_ttl");
  master.put_discard = Seconds(settings, "put_start_discard_timeout_sec");
  master.put_release = Seconds(settings, "put_start_release_timeout_sec");
  MC_TRY(CheckOrder(settings, "put_start_discard_timeout_sec", master.put_discard,
                    "put_start_release_timeout_sec", master.put_release));
  master.allow_evict_soft_pinned = settings.Flag("allow_evict_soft_pinned_objects");
  master.eviction_ratio = settings.Number("eviction_ratio");
  master.metadata_limit_bytes = settings.Bytes("metadata_memory_limit");
  options.eviction_policy =
      EvictionPolicyFrom(settings.Text("eviction_policy")).value_or(options.eviction_policy);
  master.allocation_strategy = StrategyFrom(settings.Text("allocation_strategy"));

  options.rpc_host = settings.Text("rpc_address");
  options.rpc_interface = settings.Text("rpc_interface");
  options.rpc_port = Port(settings, settings.Integer("rpc_port") != 0 ? "rpc_port" : "port");
  const std::uint64_t threads = settings.Integer("rpc_thread_num");
  options.rpc_threads = threads != 0 ? threads
                                     : std::min<std::uint64_t>(settings.Integer("max_threads"),
                                                               std::max<std::size_t>(cores, 1));
  options.admin_host = settings.Text("metrics_host");
  options.admin_port = Port(settings, "metrics_port");
  options.serve_metadata = settings.Flag("enable_http_metadata_server");
  options.metadata_host = settings.Text("http_metadata_server_host");
  options.metadata_port = Port(settings, "http_metadata_server_port");
  options.clean_metadata = settings.Flag("enable_metadata_cleanup_on_timeout");
  options.report_metrics = settings.Flag("enable_metric_reporting");
  return options;
}

}  // namespace mooncake::store
