#include "mooncake-store/src/server/master_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/env.h"
#include "mooncake-common/src/base/local_address.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/base/wall_clock.h"
#include "mooncake-common/src/net/http/server.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-store/src/master/eviction/policies.h"
#include "mooncake-store/src/master/master.h"
#include "mooncake-store/src/server/admin_http.h"
#include "mooncake-store/src/server/metadata_cleanup.h"
#include "mooncake-store/src/server/metrics.h"
#include "mooncake-store/src/server/service.h"
#include "mooncake-store/src/server/ticker.h"
#include "mooncake-store/src/server/version.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/http_metadata_server.h"

namespace mooncake::store {

namespace {

// A descriptor takes about 80 bytes a buffer: room for an engine with hundreds of thousands.
constexpr std::size_t kMaxDescriptorBytes = std::size_t{64} << 20;

// Objects of a later life of the master must have higher versions than those of an earlier one, and
// clients notice by the view that it began anew: both come from the time of day.
MasterOptions OfThisLife(MasterOptions options) {
  const auto nanoseconds = static_cast<std::uint64_t>(SinceUnixEpoch().count());
  options.seed = Rng::FromOs().Next();
  options.first_version = nanoseconds;
  options.view_version = nanoseconds;
  return options;
}

Result<std::string> AddressOfInterface(const std::string& name) {
  MC_TRY_ASSIGN(const auto all, ListInterfaceAddresses());
  const InterfaceAddress* best = nullptr;
  std::string names;
  for (const InterfaceAddress& address : all) {
    if (address.interface == name && (best == nullptr || (best->is_ipv6 && !address.is_ipv6))) {
      best = &address;
    }
    if (names.find(address.interface) == std::string::npos) {
      names += names.empty() ? "" : ", ";
      names += address.interface;
    }
  }
  if (best == nullptr) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("--rpc_interface={}: no such network interface with an address; there "
                            "are {}",
                            name, names));
  }
  return best->host;
}

// Adds to a failure to listen what was to be served, and the flag that serves it elsewhere.
Result<void> Explain(Result<void> started, std::string_view what, std::string_view flag,
                     std::string_view host, std::uint16_t port) {
  if (!started) {
    started.error().message =
        fmt::format("cannot serve {} on {}: {}; {} chooses another port", what,
                    FormatHostPort(host, port), started.error().message, flag);
  }
  return started;
}

}  // namespace

// In the order in which each needs those before it.
struct MasterServer::Parts {
  Parts(const ServerOptions& options, std::string rpc_host, const Clock& clock)
      : cleanup(metadata, EnvText("MC_METADATA_CLUSTER_ID")),
        master(OfThisLife(options.master),
               MakePolicy(options.eviction_policy, Rng::FromOs().Next()),
               options.clean_metadata ? &cleanup : nullptr),
        rpc({.host = std::move(rpc_host),
             .port = options.rpc_port,
             .software = fmt::format("mooncake_master {}", Version()),
             .threads = options.rpc_threads}),
        metrics(master, rpc, clock),
        service(master, metrics, clock),
        ticker(master, clock, {.report = ReportFor(options)}),
        admin(master, metrics, clock),
        admin_http({.host = options.admin_host, .port = options.admin_port}),
        metadata_http({.host = options.metadata_host,
                       .port = options.metadata_port,
                       .limits = {.body_bytes = kMaxDescriptorBytes}}) {
    service.RegisterWith(rpc);
    admin.Attach(admin_http);
    metadata.Attach(metadata_http);
  }

  std::function<void()> ReportFor(const ServerOptions& options) {
    if (!options.report_metrics) {
      return {};
    }
    return [this] {
      std::string line = metrics.Summary();
      if (line != reported) {
        MC_LOG_INFO("metrics: {}", line);
        reported = std::move(line);
      }
    };
  }

  transfer::HttpMetadataServer metadata;
  MetadataCleanup cleanup;
  Master master;
  rpc::RpcServer rpc;
  MasterMetrics metrics;
  MasterService service;
  std::string reported;  // The ticker's.
  Ticker ticker;
  AdminHttp admin;
  HttpServer admin_http;
  HttpServer metadata_http;
};

MasterServer::MasterServer(ServerOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

MasterServer::~MasterServer() { Stop(); }

Result<void> MasterServer::Start() {
  MC_CHECK(parts_ == nullptr);
  if (!options_.rpc_interface.empty()) {
    MC_TRY_ASSIGN(options_.rpc_host, AddressOfInterface(options_.rpc_interface));
  }
  if (options_.clean_metadata && !options_.serve_metadata) {
    MC_LOG_WARNING(
        "--enable_metadata_cleanup_on_timeout changes nothing without "
        "--enable_http_metadata_server: another server's entries are not touched");
  }
  parts_ = std::make_unique<Parts>(options_, options_.rpc_host, clock_);
  auto started = StartParts();
  if (!started) {
    Stop();
  }
  return started;
}

Result<void> MasterServer::StartParts() {
  if (options_.serve_metadata) {
    MC_TRY(Explain(parts_->metadata_http.Start(), "metadata", "--http_metadata_server_port",
                   options_.metadata_host, options_.metadata_port));
  }
  MC_TRY(
      Explain(parts_->rpc.Start(), "clients", "--rpc_port", options_.rpc_host, options_.rpc_port));
  MC_TRY(parts_->ticker.Start());
  return Explain(parts_->admin_http.Start(), "the admin interface", "--metrics_port",
                 options_.admin_host, options_.admin_port);
}

void MasterServer::Stop() {
  if (parts_ == nullptr) {
    return;
  }
  parts_->admin_http.Stop();
  parts_->rpc.Stop();
  parts_->ticker.Stop();
  parts_->metadata_http.Stop();
}

std::uint16_t MasterServer::rpc_port() const { return parts_ ? parts_->rpc.port() : 0; }

std::uint16_t MasterServer::admin_port() const { return parts_ ? parts_->admin_http.port() : 0; }

std::uint16_t MasterServer::metadata_port() const {
  return parts_ ? parts_->metadata_http.port() : 0;
}

}  // namespace mooncake::store
