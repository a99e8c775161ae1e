#include "mooncake-transfer-engine/src/transports/tcp/tcp_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/net/peer_addresses.h"

namespace mooncake::transfer {
namespace {

constexpr std::size_t kMostLanes = 16;
// What the C library's resolver takes by default until it gives up: two tries of 5 s.
constexpr Duration kLookupLimit = std::chrono::seconds(10);

class TcpEndpoint final : public Endpoint {
 public:
  explicit TcpEndpoint(std::shared_ptr<TcpChannel> channel) : channel_(std::move(channel)) {}
  ~TcpEndpoint() override { channel_->Abort({ErrorCode::kCancelled, "the endpoint is closed"}); }

  std::size_t Post(std::span<Slice* const> slices) override { return channel_->Post(slices); }
  bool Drive() override { return channel_->Drive(); }
  [[nodiscard]] std::uint64_t MovedBytes() const override { return channel_->MovedBytes(); }
  [[nodiscard]] bool CutOff() override { return channel_->CutOff(); }
  void Release() override { channel_->Release(); }
  void Abort(const Error& why) override { channel_->Abort(why); }

 private:
  const std::shared_ptr<TcpChannel> channel_;
};

// Where the descriptor names no host, the one by which its segment was dialled is meant.
Result<std::string> DataHost(const SegmentDescriptor& peer) {
  if (!peer.tcp_data_host.empty()) {
    return peer.tcp_data_host;
  }
  MC_TRY_ASSIGN(HostPort name, ParseHostPort(peer.name));
  return std::move(name.host);
}

}  // namespace

TcpTransport::TcpTransport(Reactor& reactor, RegionTable& regions, Rng rng,
                           TcpTransportOptions options)
    : reactor_(reactor),
      rng_(rng),
      options_(std::move(options)),
      server_(reactor, regions, options_.remote_check, options_.max_connections) {}

TcpTransport::~TcpTransport() { Stop(); }

TransportTraits TcpTransport::Describe() const {
  return {.name = "tcp", .rank = 10, .needs_local_registration = false, .max_slice_bytes = 0};
}

Result<void> TcpTransport::Start() {
  MC_TRY_ASSIGN(BoundListener bound, ListenInRange(options_.listen_host, options_.ports, rng_));
  MC_TRY(server_.Start(std::move(bound.fd)));
  port_ = bound.port;
  const MutexLock lock(mutex_);
  running_ = true;
  return {};
}

void TcpTransport::Stop() {
  std::vector<std::weak_ptr<TcpChannel>> channels;
  {
    const MutexLock lock(mutex_);
    running_ = false;
    channels.swap(channels_);
  }
  server_.Stop();
  for (const auto& weak : channels) {
    if (const auto channel = weak.lock()) {
      channel->Abort({ErrorCode::kCancelled, "the tcp transport is stopped"});
    }
  }
}

void TcpTransport::Announce(SegmentDescriptor& descriptor) const {
  if (port_ == 0) {
    return;
  }
  descriptor.tcp_data_port = port_;
  descriptor.tcp_proto_version = 2;
  if (descriptor.tcp_data_host.empty()) {
    descriptor.tcp_data_host = options_.advertised_host;
  }
  if (options_.use_extension) {
    if (!descriptor.extension) {
      descriptor.extension.emplace();
    }
    descriptor.extension->tcp_extension_version = kTcpExtensionVersion;
  }
}

TcpProtocol TcpTransport::ChooseProtocol(const SegmentDescriptor& peer) const {
  if (options_.force_v1 || peer.tcp_proto_version < 2) {
    return TcpProtocol::kV1;
  }
  return options_.use_extension && peer.extension &&
                 peer.extension->tcp_extension_version >= kTcpExtensionVersion
             ? TcpProtocol::kExtended
             : TcpProtocol::kV2;
}

Result<std::unique_ptr<Endpoint>> TcpTransport::Connect(
    std::shared_ptr<const SegmentDescriptor> peer) {
  if (peer->tcp_data_port == 0) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("reach {} by tcp: it announces no data port", peer->name));
  }
  MC_TRY_ASSIGN(const std::string host, DataHost(*peer));
  auto addresses = PeerAddresses::Create(host, peer->tcp_data_port, options_.lookup);
  MC_TRY(addresses->WaitUntilKnown(SteadyClock::Get().Now() + kLookupLimit));
  const MutexLock lock(mutex_);
  if (!running_) {
    return Fail(ErrorCode::kUnavailable, "the tcp transport is not running");
  }
  std::erase_if(channels_, [](const auto& channel) { return channel.expired(); });
  auto channel = std::make_shared<TcpChannel>(
      reactor_, std::move(addresses),
      TcpChannel::Options{
          .protocol = ChooseProtocol(*peer),
          .max_lanes = std::clamp(options_.lanes_per_peer, std::size_t{1}, kMostLanes),
          .max_unclaimed_bytes = options_.max_queued_bytes,
          .bytes_per_lane = options_.bytes_per_lane});
  channels_.push_back(channel);
  return std::make_unique<TcpEndpoint>(std::move(channel));
}

}  // namespace mooncake::transfer
