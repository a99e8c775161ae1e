// Transfers over TCP: to published peers by protocol v1 or v2, to our own by the extension
// (docs/formats/tcp.md). Serves the data port, and reaches those of others.
//
// Thread-safety: as in transport.h.
// Lifetime:      reactor and regions outlive it, it outlives its endpoints. Has no thread of its
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/net/port_range.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/resolve.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/engine/remote_check.h"
#include "mooncake-transfer-engine/src/transports/tcp/data_server.h"
#include "mooncake-transfer-engine/src/transports/tcp/tcp_channel.h"
#include "mooncake-transfer-engine/src/transports/transport.h"

namespace mooncake::transfer {

struct TcpTransportOptions {
  std::string listen_host;      // Empty = all addresses of both families.
  PortRange ports;              // Of the data port.
  std::string advertised_host;  // Into tcp_data_host where that is empty; empty = leave it.
  bool force_v1 = false;        // MC_TCP_PROTO=1.
  bool use_extension = true;
  RemoteCheck remote_check = RemoteCheck::kAuto;  // Of requests from peers.
  NameLookup lookup = ResolveAddresses;
  std::size_t lanes_per_peer = 4;  // Connections, 1..16.
  // Of peers, to the data port; with more, those that are idle for longest are closed.
  std::size_t max_connections = 16384;
  // Post() takes no more once this much waits for a peer.
  std::uint64_t max_queued_bytes = std::uint64_t{64} << 20;
  // With this much waiting one more connection is opened.
  std::uint64_t bytes_per_lane = std::uint64_t{32} << 20;
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(Reactor& reactor, RegionTable& regions, Rng rng, TcpTransportOptions options = {});
  ~TcpTransport() override;

  [[nodiscard]] TransportTraits Describe() const override;
  // Errors: kExhausted when no port of the range is free; kInvalidArgument; kIo.
  [[nodiscard]] Result<void> Start() override;
  void Stop() override;
  // Fills tcp_data_port, tcp_proto_version, tcp_data_host (see Options) and, in the extension (made
  // if absent), tcp_extension_version.
  void Announce(SegmentDescriptor& descriptor) const override;
  // May wait for a name server when the peer's host is a name.
  [[nodiscard]] Result<std::unique_ptr<Endpoint>> Connect(
      std::shared_ptr<const SegmentDescriptor> peer) override;

 private:
  [[nodiscard]] TcpProtocol ChooseProtocol(const SegmentDescriptor& peer) const;

  Reactor& reactor_;
  Rng rng_;
  const TcpTransportOptions options_;
  DataServer server_;
  std::uint16_t port_ = 0;  // Set by Start().
  Mutex mutex_;
  bool running_ MC_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<TcpChannel>> channels_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
