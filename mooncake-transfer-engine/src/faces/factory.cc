#include "mooncake-transfer-engine/include/mooncake/transfer/factory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/descriptor_limit.h"
#include "mooncake-common/src/base/env.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/faces/metadata_directory.h"
#include "mooncake-transfer-engine/src/metadata/metadata_factory.h"
#include "mooncake-transfer-engine/src/transports/local/local_transport.h"
#include "mooncake-transfer-engine/src/transports/tcp/tcp_transport.h"

namespace mooncake::transfer {

namespace {

Result<PortRange> PortsFromEnv() {
  MC_TRY_ASSIGN(const std::int64_t min_port, EnvInteger("MC_MIN_RPC_PORT"));
  MC_TRY_ASSIGN(const std::int64_t max_port, EnvInteger("MC_MAX_RPC_PORT"));
  return PortRange{.min = static_cast<std::uint16_t>(min_port),
                   .max = static_cast<std::uint16_t>(max_port)};
}

// The one port that the user named, for handshakes. The data port keeps the range.
Result<PortRange> NamedPort(const EngineSettings& settings) {
  const auto named = ParseHostPort(settings.local_name);
  const std::uint64_t port = named && named->port ? *named->port : settings.rpc_port;
  if (port > std::numeric_limits<std::uint16_t>::max()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("listen on port {}, as MC_LEGACY_RPC_PORT_BINDING asks: name a port up "
                            "to 65535",
                            port));
  }
  return PortRange{.min = static_cast<std::uint16_t>(port),
                   .max = static_cast<std::uint16_t>(port),
                   .set_by = "MC_LEGACY_RPC_PORT_BINDING and the port of the local name"};
}

Result<MetadataOptions> MetadataOptionsFromEnv(const EngineSettings& settings, PortRange ports) {
  MetadataOptions options;
  options.connection = settings.metadata;
  options.local_server_name = settings.local_name;
  options.cluster_id = EnvText("MC_METADATA_CLUSTER_ID");
  options.bind_address = EnvText("MC_TCP_BIND_ADDRESS");
  MC_TRY_ASSIGN(options.prefer_ipv6, EnvFlag("MC_USE_IPV6"));
  options.handshake_ports = ports;
  MC_TRY_ASSIGN(const bool bind_named, EnvFlag("MC_LEGACY_RPC_PORT_BINDING"));
  if (bind_named) {
    MC_TRY_ASSIGN(options.handshake_ports, NamedPort(settings));
  }
  MC_TRY_ASSIGN(const std::int64_t peer_port, EnvInteger("MC_HANDSHAKE_PORT"));
  options.default_peer_port = static_cast<std::uint16_t>(peer_port);
  MC_TRY_ASSIGN(options.max_handshake_bytes, EnvBytes("MC_HANDSHAKE_MAX_LENGTH"));
  MC_TRY_ASSIGN(options.handshake_connect_timeout, EnvDuration("MC_HANDSHAKE_CONNECT_TIMEOUT"));
  return options;
}

Result<TcpTransportOptions> TcpOptionsFromEnv(PortRange ports, std::string advertised_host) {
  TcpTransportOptions options;
  options.ports = ports;
  options.advertised_host = std::move(advertised_host);
  MC_TRY_ASSIGN(const std::int64_t lanes, EnvInteger("MC_TCP_LANES_PER_PEER"));
  options.lanes_per_peer = static_cast<std::size_t>(lanes);
  const auto protocol = EnvChoice("MC_TCP_PROTO");
  MC_TRY(protocol);
  options.force_v1 = *protocol == "1";
  return options;
}

Result<void> ReadEngineEnv(EngineOptions& options) {
  MC_TRY_ASSIGN(options.stall_limit, EnvDuration("MC_TRANSFER_TIMEOUT"));
  MC_TRY_ASSIGN(const auto slice_timeout, EnvTimeout("MC_SLICE_TIMEOUT"));
  if (slice_timeout && *slice_timeout > Duration::zero()) {
    options.stall_limit = std::min(options.stall_limit, *slice_timeout);
  }
  MC_TRY_ASSIGN(const std::int64_t retries, EnvInteger("MC_RETRY_CNT"));
  options.attempt_budget = static_cast<std::uint32_t>(retries) + 1;
  MC_TRY_ASSIGN(const auto enforce, EnvAutoFlag("MC_ENFORCE_REMOTE_ACCESSIBLE"));
  options.remote_check = !enforce   ? RemoteCheck::kAuto
                         : *enforce ? RemoteCheck::kAlways
                                    : RemoteCheck::kNever;
  MC_TRY_ASSIGN(options.refresh_on_open, EnvFlag("MC_DISABLE_METACACHE"));
  return {};
}

}  // namespace

Result<std::unique_ptr<Engine>> CreateEngine(const EngineSettings& settings) {
  MC_TRY(InitLoggingFromEnv());
  WarnOfUnreadEnvOnce();
  const auto descriptors = RaiseDescriptorLimit();
  if (!descriptors) {
    MC_LOG_WARNING("{}", descriptors.error().message);
  }
  EngineOptions options;
  MC_TRY(ReadEngineEnv(options));
  MC_TRY_ASSIGN(const bool force_tcp, EnvFlag("MC_FORCE_TCP"));
  MC_TRY_ASSIGN(const PortRange ports, PortsFromEnv());
  MC_TRY_ASSIGN(const MetadataOptions metadata_options, MetadataOptionsFromEnv(settings, ports));

  options.reactor = std::make_shared<Reactor>();
  MC_TRY(options.reactor->Start());
  MC_TRY_ASSIGN(auto metadata, MakeMetadata(metadata_options, *options.reactor, Rng::FromOs()));
  auto directory = std::make_shared<MetadataDirectory>(std::move(metadata));
  MC_TRY(directory->Start());

  options.name = directory->metadata().LocalName();
  options.rpc_port = directory->metadata().RpcPort();
  options.regions = std::make_shared<RegionTable>();
  options.identity.tcp_data_host = directory->metadata().DataHost();
  options.identity.extension = PeerExtension{.incarnation = Rng::FromOs().Next()};
  options.directory = std::move(directory);
  if (!force_tcp) {
    auto local = std::make_unique<LocalTransport>(
        *options.regions,
        LocalTransportOptions{.on_lasting_thread = [&reactor = *options.reactor](auto function) {
          reactor.Post(std::move(function));
        }});
    options.revoke_announced = [transport = local.get()] { return transport->RevokeAnnounced(); };
    options.transports.push_back(std::move(local));
  }
  MC_TRY_ASSIGN(auto tcp_options, TcpOptionsFromEnv(ports, options.identity.tcp_data_host));
  tcp_options.remote_check = options.remote_check;
  if (descriptors) {  // The other half is the application's.
    tcp_options.max_connections =
        std::min<std::size_t>(tcp_options.max_connections, *descriptors / 2);
  }
  options.transports.push_back(std::make_unique<TcpTransport>(
      *options.reactor, *options.regions, Rng::FromOs(), std::move(tcp_options)));
  MC_TRY_ASSIGN(auto engine, Engine::Create(std::move(options)));
  MC_TRY(engine->Start());
  const auto announced = engine->LocalDescriptor();
  const bool local = announced->extension && announced->extension->nonce != 0;
  const std::string_view wires = local ? "local, tcp" : "tcp";
  // Said because users look for it: an accelerator's runtime may well be installed.
  MC_LOG_INFO(
      "engine {}: bytes move by {}; no accelerator is used, whatever runtime is installed, since "
      "no transport of this build reaches device memory",
      engine->name(), wires);
  return engine;
}

}  // namespace mooncake::transfer
