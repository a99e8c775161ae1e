#include "mooncake-transfer-engine/src/metadata/p2p_metadata.h"

#include <utility>

#include "mooncake-common/src/base/log.h"
#include "mooncake-transfer-engine/src/metadata/descriptor_codec.h"
#include "mooncake-transfer-engine/src/metadata/timestamp.h"

namespace mooncake::transfer {

P2pMetadata::P2pMetadata(MetadataOptions options, Reactor& reactor, Rng rng)
    : options_(std::move(options)), rng_(rng), link_(reactor, options_) {}
P2pMetadata::~P2pMetadata() { Stop(); }

Result<void> P2pMetadata::Start(DescribeLocal describe) {
  MC_TRY_ASSIGN(host_, ChoosePeerToPeerHost(options_.local_server_name, options_.bind_address,
                                            options_.prefer_ipv6, ListInterfaceAddresses));
  describe_ = std::move(describe);
  MC_TRY(link_.Start(
      rng_, [this] { return EncodeDescriptor(Describe()); }, [this] { return LocalName(); }));
  MC_LOG_INFO("segment {} is served ({})", LocalName(), host_.reason);
  if (IsLoopbackHost(host_.host)) {
    MC_LOG_WARNING(
        "segment {} can be reached from this host only; give an address of this host as its name "
        "if peers are to come from others",
        LocalName());
  }
  return {};
}

void P2pMetadata::Stop() { link_.Stop(); }

std::string P2pMetadata::LocalName() const {
  const std::uint16_t port = link_.port();
  return port == 0 ? std::string() : FormatHostPort(host_.host, port);
}

SegmentDescriptor P2pMetadata::Describe() const {
  SegmentDescriptor descriptor = describe_();
  descriptor.timestamp = TimestampNow();
  return descriptor;
}

Result<SegmentDescriptor> P2pMetadata::GetSegment(std::string_view name) {
  if (WithoutLeadingSlash(name) == LocalName()) {
    return Describe();
  }
  MC_TRY_ASSIGN(const HostPort peer, ParsePeerName(name, options_.default_peer_port));
  MC_TRY_ASSIGN(SegmentDescriptor descriptor,
                link_.client().FetchDescriptor(peer.host, *peer.port, Describe()));
  if (descriptor.tcp_data_host.empty() && descriptor.protocol == "tcp") {
    descriptor.tcp_data_host = peer.host;
  }
  return descriptor;
}

Result<void> P2pMetadata::Probe(std::string_view name) {
  MC_TRY_ASSIGN(const HostPort peer, ParsePeerName(name, options_.default_peer_port));
  return link_.client().Probe(peer.host, *peer.port);
}

Result<void> P2pMetadata::Notify(std::string_view name, const Notification& notification) {
  MC_TRY_ASSIGN(const HostPort peer, ParsePeerName(name, options_.default_peer_port));
  return link_.client().SendNotify(peer.host, *peer.port, notification);
}

}  // namespace mooncake::transfer
