// A store client as a process of its own: lends a segment to the pool and tells its health. See
// docs/operations.md.
#include <fmt/format.h>
#include <gflags/gflags.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/byte_size.h"
#include "mooncake-common/src/base/descriptor_limit.h"
#include "mooncake-common/src/base/end_signals.h"
#include "mooncake-common/src/base/env.h"
#include "mooncake-common/src/base/glog_flags.h"
#include "mooncake-common/src/base/local_address.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/net/http/server.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-store/include/mooncake/store/client.h"
#include "mooncake-store/src/server/version.h"

DEFINE_string(
    host, "0.0.0.0",
    "Address under which peers reach this process; 0.0.0.0: the one that routes to the master");
DEFINE_int32(port, 50052, "Port for thin clients of this host");
DEFINE_string(metadata_server, "http://127.0.0.1:8080/metadata",
              "P2PHANDSHAKE, or the URL of a metadata server");
DEFINE_string(device_names, "", "Comma-separated NICs to use; empty: all");
DEFINE_string(master_server_address, "127.0.0.1:50051", "host:port of the master");
DEFINE_string(protocol, "tcp", "Transport of the data");
DEFINE_string(global_segment_size, "4 GB", "Memory lent to the pool");
DEFINE_string(local_buffer_size, "0", "Memory for copying calls");
DEFINE_int32(threads, 1, "Accepted, without effect: calls run on the connections' thread");
DEFINE_string(tenant_id, "default", "Tenant of the objects");
DEFINE_bool(enable_offload, false, "Keep evicted objects on SSD; not built in this version");
DEFINE_bool(start_offload_rpc_server, true, "Accepted, without effect without --enable_offload");
DEFINE_bool(enable_http_server, false, "Serve /health over HTTP");
DEFINE_int32(http_port, 9300, "Port of the HTTP server");
DEFINE_bool(use_mmap_arena_allocator, false,
            "Accepted, without effect: segments are one mapping each");
DEFINE_string(mmap_arena_pool_size, "8 GiB", "Accepted, without effect");

namespace mooncake::store {
namespace {

constexpr Duration kMasterPatience = std::chrono::seconds(60);
constexpr Duration kLineEvery = std::chrono::seconds(5);
constexpr std::uint64_t kConnections = 1024;  // Of peers that read and write its memory.

// What others can dial: --host, or where that says nothing the address from which the master is
// reached.
Result<std::string> AdvertisedName() {
  MC_TRY_ASSIGN(const HostPort host, ParseHostPort(FLAGS_host));
  if (!IsWildcardHost(host.host)) {
    return FLAGS_host;
  }
  MC_TRY_ASSIGN(const HostPort master, ParseHostPort(FLAGS_master_server_address));
  AdvertiseChoice choice;
  MC_TRY_ASSIGN(const SocketAddress address, ResolveAddress(master.host, master.port.value_or(0)));
  MC_TRY_ASSIGN(const HostPort resolved, ParseHostPort(address.ToString()));
  choice.routed = AddressThatRoutesTo(resolved.host).value_or(std::string());
  MC_TRY_ASSIGN(const auto interfaces, ListInterfaceAddresses());
  return ChooseAdvertisedAddress(choice, interfaces).host;
}

Result<std::uint16_t> PortOf(const char* flag, std::int32_t value) {
  if (value < 0 || value > 65535) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--{}={}: ports are 0 to 65535", flag, value));
  }
  return static_cast<std::uint16_t>(value);
}

Result<std::uint64_t> SizeOf(const char* flag, const std::string& value) {
  auto size = ParseByteSize(value);
  if (!size) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("--{}: {}", flag, size.error().message));
  }
  return *size;
}

Result<std::unique_ptr<Client>> Join() {
  ClientSettings settings;
  MC_TRY_ASSIGN(settings.local_hostname, AdvertisedName());
  settings.metadata_server = FLAGS_metadata_server;
  MC_TRY_ASSIGN(settings.global_segment_bytes,
                SizeOf("global_segment_size", FLAGS_global_segment_size));
  MC_TRY_ASSIGN(settings.local_buffer_bytes, SizeOf("local_buffer_size", FLAGS_local_buffer_size));
  settings.protocol = FLAGS_protocol;
  settings.devices = FLAGS_device_names;
  settings.master_address = FLAGS_master_server_address;
  settings.tenant = FLAGS_tenant_id;
  settings.master_patience = kLineEvery;
  const Instant give_up = SteadyClock::Get().Now() + kMasterPatience;
  for (;;) {
    auto client = Client::Create(settings);
    if (client) {
      return *std::move(client);
    }
    // Wrong settings stay wrong; a master may still come.
    if (client.error().code != StoreCode::kInternalError || SteadyClock::Get().Now() >= give_up) {
      return Fail(ErrorCode::kUnavailable, client.error().text);
    }
    MC_LOG_WARNING("{}; trying again", client.error().text);
  }
}

void ServeHealth(HttpServer& server, const Client& client) {
  server.Handle("GET", "/health", [&client](const HttpRequest&) {
    const bool healthy = client.health() == Health::kHealthy;
    return HttpResponse{.status = healthy ? 200 : 503,
                        .content_type = "application/json",
                        .body = fmt::format(R"({{"status":"{}","code":{}}})",
                                            healthy ? "healthy" : "master_unreachable",
                                            static_cast<int>(client.health())),
                        .headers = {}};
  });
  for (const char* path : {"/metrics", "/metrics/summary"}) {
    server.Handle("GET", path, [](const HttpRequest&) {
      return HttpResponse{.status = 503,
                          .content_type = "text/plain",
                          .body = "metrics not available",
                          .headers = {}};
    });
  }
}

Result<void> Run() {
  const EndSignals ends = EndSignals::Block();
  if (FLAGS_enable_offload) {
    return Fail(ErrorCode::kNotSupported,
                "--enable_offload: the SSD tier is not built in this version; leave it out");
  }
  MC_TRY_ASSIGN(const std::uint16_t port, PortOf("port", FLAGS_port));
  MC_TRY_ASSIGN(const std::uint16_t http_port, PortOf("http_port", FLAGS_http_port));
  PrepareDescriptorsFor(kConnections);
  // Thin clients are told in words that nothing is served yet, rather than finding no port.
  rpc::RpcServer thin_clients(
      {.host = "", .port = port, .software = "mooncake_client " + std::string(Version())});
  if (const auto started = thin_clients.Start(); !started) {
    return Fail(started.error().code,
                fmt::format("--port={}: {}; choose another or stop who holds it", port,
                            started.error().message));
  }
  MC_TRY_ASSIGN(const auto client, Join());
  HttpServer http({.port = http_port});
  if (FLAGS_enable_http_server) {
    ServeHealth(http, *client);
    if (const auto started = http.Start(); !started) {
      return Fail(started.error().code,
                  fmt::format("--http_port={}: {}; choose another or stop who holds it", http_port,
                              started.error().message));
    }
    MC_LOG_INFO("serves its health on port {}", http.port());
  }
  MC_LOG_INFO("mooncake_client {} lends {} as {}", Version(), FLAGS_global_segment_size,
              client->hostname());
  const int signal = ends.Wait();
  MC_LOG_INFO("mooncake_client ends: signal {}", signal);
  http.Stop();
  client->Close();
  thin_clients.Stop();
  return {};
}

Result<void> Main(int argc, char** argv) {
  gflags::SetUsageMessage("Lends memory of this host to a store");
  gflags::SetVersionString(std::string(Version()));
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  MC_TRY(InitLoggingFromEnv());
  MC_TRY(ApplyLogFlags());
  WarnOfUnreadEnvOnce();
  return Run();
}

}  // namespace
}  // namespace mooncake::store

int main(int argc, char** argv) {
  const auto ended = mooncake::store::Main(argc, argv);
  if (!ended) {
    std::fprintf(stderr, "mooncake_client: %s\n", ended.error().message.c_str());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
