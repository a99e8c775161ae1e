#include "mooncake-transfer-engine/src/transports/local/local_transport.h"

#include <fmt/core.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "mooncake-common/src/base/log.h"

namespace mooncake::transfer {
namespace {

// From the kernel and not from an injected Rng: it must differ between processes that are otherwise
// equal, and nothing that is decided depends on it.
Result<std::uint64_t> DrawNonce() {
  std::uint64_t nonce = 0;
  do {
    if (::getrandom(&nonce, sizeof nonce, 0) != static_cast<ssize_t>(sizeof nonce)) {
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("draw a nonce: getrandom: {}", std::strerror(errno)));
    }
  } while (nonce == 0);
  return nonce;
}

class LocalEndpoint final : public Endpoint {
 public:
  LocalEndpoint(std::shared_ptr<LocalChannel> channel, CopyHelper& helper)
      : channel_(std::move(channel)), helper_(helper) {}
  ~LocalEndpoint() override { channel_->Abort({ErrorCode::kCancelled, "the endpoint is closed"}); }

  std::size_t Post(std::span<Slice* const> slices) override { return channel_->Post(slices); }
  bool Drive() override { return channel_->Drive(); }
  [[nodiscard]] std::uint64_t MovedBytes() const override { return channel_->MovedBytes(); }
  void Release() override {
    if (!channel_->HasUnclaimed()) {
      return;
    }
    if (const Result<void> helped = helper_.Help(channel_); !helped) {
      MC_LOG_WARNING("finish local copies in the caller: {}", helped.error().ToString());
      while (channel_->Drive()) {
      }
    }
  }
  void Abort(const Error& why) override { channel_->Abort(why); }

 private:
  const std::shared_ptr<LocalChannel> channel_;
  CopyHelper& helper_;
};

}  // namespace

LocalTransport::LocalTransport(RegionTable& regions, LocalTransportOptions options)
    : regions_(regions), options_(std::move(options)) {}

LocalTransport::~LocalTransport() { Stop(); }

TransportTraits LocalTransport::Describe() const {
  return {.name = "local", .rank = 0, .needs_local_registration = false, .max_slice_bytes = 0};
}

Result<void> LocalTransport::TakePart() {
  MC_TRY_ASSIGN(identity_, options_.identity());
  MC_TRY_ASSIGN(incarnation_, DrawNonce());
  MC_TRY_ASSIGN(const std::uint64_t nonce, DrawNonce());
  MC_TRY_ASSIGN(presence_, Presence::Create());
  presence_->nonce().store(nonce);
  return {};
}

Result<void> LocalTransport::Start() {
  if (const auto part = TakePart(); !part) {
    MC_LOG_WARNING("processes of this host are reached as those of others: {}",
                   part.error().message);
    return {};
  }
  if (options_.on_lasting_thread) {
    options_.on_lasting_thread([presence = presence_] { Presence::HoldByThisThread(presence); });
  }
  const MutexLock lock(mutex_);
  running_ = true;
  return {};
}

void LocalTransport::Stop() {
  if (presence_) {
    presence_->nonce().store(0);
  }
  std::vector<std::weak_ptr<LocalChannel>> channels;
  {
    const MutexLock lock(mutex_);
    running_ = false;
    channels.swap(channels_);
  }
  helper_.Stop();
  for (const auto& weak : channels) {
    if (const auto channel = weak.lock()) {
      channel->Abort({ErrorCode::kCancelled, "the local transport is stopped"});
    }
  }
}

void LocalTransport::Announce(SegmentDescriptor& descriptor) const {
  if (!presence_ || presence_->nonce().load() == 0) {
    return;
  }
  if (!descriptor.extension) {
    descriptor.extension.emplace();
  }
  PeerExtension& extension = *descriptor.extension;
  extension.host_id = identity_.boot_id;
  extension.pid_namespace = identity_.pid_namespace;
  extension.pid = identity_.pid;
  extension.nonce = presence_->nonce().load();
  extension.nonce_address = presence_->address();
  extension.nonce_fd = presence_->fd();
  if (extension.incarnation == 0) {
    extension.incarnation = incarnation_;
  }
}

Result<std::unique_ptr<Endpoint>> LocalTransport::Connect(
    std::shared_ptr<const SegmentDescriptor> peer) {
  if (!peer->extension) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("reach {} locally: it does not announce it", peer->name));
  }
  MC_TRY_ASSIGN(const PeerProcess process, PeerProcess::Prove(*peer->extension, identity_));
  const MutexLock lock(mutex_);
  if (!running_) {
    return Fail(ErrorCode::kUnavailable, "the local transport is not running");
  }
  std::erase_if(channels_, [](const auto& channel) { return channel.expired(); });
  const auto channel = std::make_shared<LocalChannel>(
      process, *peer, regions_,
      LocalChannelOptions{.inline_bytes = options_.inline_bytes,
                          .chunk_bytes = options_.chunk_bytes,
                          .use_shared_memory = options_.use_shared_memory});
  channels_.push_back(channel);
  return std::make_unique<LocalEndpoint>(channel, helper_);
}

Result<void> LocalTransport::RevokeAnnounced() {
  if (!presence_) {
    return {};
  }
  MC_TRY_ASSIGN(const std::uint64_t nonce, DrawNonce());
  presence_->nonce().store(nonce);
  return {};
}

}  // namespace mooncake::transfer
