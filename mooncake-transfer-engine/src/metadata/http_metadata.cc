#include "mooncake-transfer-engine/src/metadata/http_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/local_address.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/text.h"
#include "mooncake-common/src/net/http/url.h"
#include "mooncake-common/src/net/socket.h"
#include "mooncake-transfer-engine/src/metadata/descriptor_codec.h"
#include "mooncake-transfer-engine/src/metadata/server_name.h"
#include "mooncake-transfer-engine/src/metadata/timestamp.h"

namespace mooncake::transfer {
namespace {

// Whoever holds a name that we want has to answer for it soon. An old peer may be held up for 5 s
// by one silent client.
HandshakeClientOptions LivenessProbe() {
  return {.connect_timeout = std::chrono::seconds(2), .probe_timeout = std::chrono::seconds(7)};
}

bool IsThisHost(const std::string& host) {
  if (IsLoopbackHost(host)) {
    return true;
  }
  const auto interfaces = ListInterfaceAddresses();
  return interfaces && std::ranges::any_of(*interfaces, [&](const InterfaceAddress& address) {
           return address.host == host;
         });
}

// The address that packets to the metadata server carry; empty when nothing says so.
std::string RoutedAddress(const std::string& url) {
  const auto parsed = Url::Parse(url);
  if (!parsed) {
    return {};
  }
  const auto address = ResolveAddress(parsed->host, parsed->port);
  if (!address) {
    return {};
  }
  const auto peer = ParseHostPort(address->ToString());
  return peer ? AddressThatRoutesTo(peer->host).value_or("") : "";
}

}  // namespace

Result<std::unique_ptr<Metadata>> HttpMetadata::Make(MetadataOptions options, Reactor& reactor,
                                                     Rng rng) {
  MC_TRY_ASSIGN(auto store, HttpStore::Open(options.connection));
  return std::make_unique<HttpMetadata>(std::move(options), reactor, rng, std::move(store));
}

HttpMetadata::HttpMetadata(MetadataOptions options, Reactor& reactor, Rng rng,
                           std::unique_ptr<HttpStore> store)
    : options_(std::move(options)),
      rng_(rng),
      link_(reactor, options_),
      store_(std::move(store)),
      name_(WithoutLeadingSlash(options_.local_server_name)),
      told_name_(name_) {}
HttpMetadata::~HttpMetadata() { Stop(); }

// The order of requests is that of published engines: servers and tests may lean on it.
Result<void> HttpMetadata::Start(DescribeLocal) {
  MC_TRY(link_.Start(
      rng_, [] { return std::string(kNoDescriptor); },
      [this] {
        const MutexLock lock(mutex_);
        return told_name_;
      }));
  const auto publish = [this]() -> Result<void> {
    MC_TRY(ChooseNames());
    MC_TRY(PublishRpcMeta());
    rpc_meta_published_ = true;
    MC_TRY_ASSIGN(const auto before, store_->Get(SegmentKey(options_.cluster_id, name_)));
    if (before) {
      MC_LOG_INFO("segment {} replaces what a former process of that name published", name_);
    }
    MC_TRY_ASSIGN(keeper_, Thread::Start("mc-metadata", [this] { Keep(); }));
    return {};
  };
  auto published = publish();
  if (!published) {
    Stop();
  }
  return published;
}

Result<void> HttpMetadata::ChooseNames() {
  MC_TRY_ASSIGN(const std::vector<InterfaceAddress> interfaces, ListInterfaceAddresses());
  const HostChoice host =
      ChoosePublishedHost(options_.local_server_name, options_.bind_address,
                          RoutedAddress(store_->url()), options_.prefer_ipv6, interfaces);
  self_ = {.host = host.host, .port = link_.port()};
  if (name_.empty()) {
    name_ = FormatHostPort(self_.host, self_.port);
    const MutexLock lock(mutex_);
    told_name_ = name_;
  }
  MC_LOG_INFO("segment {} is published as reachable at {} ({})", name_,
              FormatHostPort(self_.host, self_.port), host.reason);
  if (IsLoopbackHost(self_.host)) {
    MC_LOG_WARNING(
        "segment {} is published under a loopback address, for this host has no other that is up: "
        "peers on other hosts cannot reach it; set MC_TCP_BIND_ADDRESS to one that they can",
        name_);
  }
  return {};
}

void HttpMetadata::Stop() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopping_, true)) {
      return;
    }
    stop_.NotifyAll();
  }
  keeper_.Join();
  if (rpc_meta_published_ && !NameLost()) {
    for (const std::string& key :
         {RpcMetaKey(options_.cluster_id, name_), SegmentKey(options_.cluster_id, name_)}) {
      if (const auto deleted = store_->Delete(key); !deleted) {
        MC_LOG_WARNING("what segment {} published stays behind: {}", name_,
                       deleted.error().message);
        break;
      }
    }
  }
  link_.Stop();
}

Result<void> HttpMetadata::PublishRpcMeta() {
  const std::string key = RpcMetaKey(options_.cluster_id, name_);
  auto put = store_->Put(key, EncodeRpcMeta(self_));
  if (put || put.error().code != ErrorCode::kAlreadyExists) {
    return put;
  }
  MC_TRY_ASSIGN(const auto old, store_->Get(key));
  return old ? ReplaceRpcMeta(*old) : put;
}

// The name is taken in the server: by a process that died, by ourselves, or by one that lives.
Result<void> HttpMetadata::ReplaceRpcMeta(const std::string& old_value) {
  const auto old = DecodeRpcMeta(old_value);
  if (old && *old == self_) {
    return {};
  }
  if (old && IsAlive(*old)) {
    return Fail(
        ErrorCode::kAlreadyExists,
        fmt::format("publish segment {} at {}: a living process at {} has this name; give each "
                    "process a name of its own, or stop the other one",
                    name_, FormatHostPort(self_.host, self_.port),
                    FormatHostPort(old->host, old->port)));
  }
  MC_LOG_INFO("segment {} was last published by a process that is gone ({}); it is replaced", name_,
              old ? FormatHostPort(old->host, old->port) : "no address");
  const std::string key = RpcMetaKey(options_.cluster_id, name_);
  MC_TRY(store_->Delete(key));
  return store_->Put(key, EncodeRpcMeta(self_));
}

bool HttpMetadata::IsAlive(const RpcMeta& other) const {
  if (other.port == self_.port && IsThisHost(other.host)) {
    return false;  // The port is ours now.
  }
  const auto answers = HandshakeClient(LivenessProbe()).AskName(other.host, other.port);
  if (answers) {
    // Ports are used again: who says another name is another process.
    return answers->empty() || *answers == name_;
  }
  // Connected but silent: somebody is there and may be busy. Anything else: nobody of our kind.
  return answers.error().code == ErrorCode::kTimeout;
}

bool HttpMetadata::NameLost() const {
  const MutexLock lock(mutex_);
  return name_lost_;
}

std::optional<std::string> HttpMetadata::Published() const {
  const MutexLock lock(mutex_);
  return published_;
}

Result<void> HttpMetadata::PublishSegment(const SegmentDescriptor& descriptor) {
  SegmentDescriptor stamped = descriptor;
  stamped.timestamp = TimestampNow();
  {
    const MutexLock lock(mutex_);
    published_ = EncodeDescriptor(stamped);
  }
  return PutSegment();
}

// Whoever puts last has to put the latest: published_ is set before it is put, and looked at again
// afterwards.
Result<void> HttpMetadata::PutSegment() {
  const std::string key = SegmentKey(options_.cluster_id, name_);
  for (auto latest = Published(); latest;) {
    MC_TRY(store_->Put(key, *latest));
    auto now = Published();
    if (now == latest) {
      break;
    }
    latest = std::move(now);
  }
  return {};
}

Result<SegmentDescriptor> HttpMetadata::GetSegment(std::string_view name) {
  name = WithoutLeadingSlash(name);
  const std::string key = SegmentKey(options_.cluster_id, name);
  MC_TRY_ASSIGN(const auto value, store_->Get(key));
  if (!value) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("find segment {}: {} has no {}; does its process run, with the same "
                            "metadata server and MC_METADATA_CLUSTER_ID?",
                            Quote(name), store_->url(), key));
  }
  auto descriptor = DecodeDescriptor(*value);
  if (!descriptor) {
    return Fail(descriptor.error().code,
                fmt::format("{} at {}: {}", key, store_->url(), descriptor.error().message));
  }
  if (descriptor->tcp_data_host.empty() && descriptor->protocol == "tcp") {
    MC_TRY_ASSIGN(RpcMeta meta, GetRpcMeta(name));
    descriptor->tcp_data_host = std::move(meta.host);
  }
  return descriptor;
}

Result<RpcMeta> HttpMetadata::GetRpcMeta(std::string_view name) {
  const std::string key = RpcMetaKey(options_.cluster_id, WithoutLeadingSlash(name));
  MC_TRY_ASSIGN(const auto value, store_->Get(key));
  if (!value) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("find the address of segment {}: {} has no {}; does its process run?",
                            Quote(name), store_->url(), key));
  }
  auto meta = DecodeRpcMeta(*value);
  if (!meta) {
    return Fail(meta.error().code,
                fmt::format("{} at {}: {}", key, store_->url(), meta.error().message));
  }
  return meta;
}

Result<void> HttpMetadata::RemoveSegment(std::string_view name) {
  name = WithoutLeadingSlash(name);
  if (name == name_) {
    const MutexLock lock(mutex_);
    published_.reset();
  }
  return store_->Delete(SegmentKey(options_.cluster_id, name));
}

Result<void> HttpMetadata::RepublishRpcMeta() {
  MC_TRY_ASSIGN(const auto meta, store_->Get(RpcMetaKey(options_.cluster_id, name_)));
  if (!meta) {
    MC_LOG_WARNING("{} has lost segment {}; it is published again", store_->url(), name_);
    return PublishRpcMeta();
  }
  return DecodeRpcMeta(*meta) == self_ ? Result<void>() : ReplaceRpcMeta(*meta);
}

Result<void> HttpMetadata::Republish() {
  const auto ours = RepublishRpcMeta();
  {
    const MutexLock lock(mutex_);
    // A server that does not answer says nothing about who has the name.
    name_lost_ = ours ? false : name_lost_ || ours.error().code == ErrorCode::kAlreadyExists;
  }
  MC_TRY(ours);
  const auto wanted = Published();
  if (!wanted) {
    return {};
  }
  MC_TRY_ASSIGN(const auto segment, store_->Get(SegmentKey(options_.cluster_id, name_)));
  return segment == wanted ? Result<void>() : PutSegment();
}

void HttpMetadata::Keep() {
  bool healthy = true;
  for (;;) {
    {
      const MutexLock lock(mutex_);
      const Instant next = SteadyClock::Get().Now() + options_.check_interval;
      while (!stopping_ && stop_.WaitUntil(mutex_, next)) {
      }
      if (stopping_) {
        return;
      }
    }
    const auto checked = Republish();
    // A line when it begins and one when it ends, not one a round.
    if (!checked && healthy) {
      MC_LOG_WARNING("segment {} may not be found: {}", name_, checked.error().message);
    } else if (checked && !healthy) {
      MC_LOG_INFO("segment {} is published again", name_);
    }
    healthy = checked.has_value();
  }
}

Result<void> HttpMetadata::Probe(std::string_view name) {
  name = WithoutLeadingSlash(name);
  MC_TRY_ASSIGN(const RpcMeta meta, GetRpcMeta(name));
  MC_TRY_ASSIGN(const std::string answers, link_.client().AskName(meta.host, meta.port));
  if (!answers.empty() && answers != name) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("probe segment {}: {} answers for another segment, {}; the process is "
                            "gone and its port used again",
                            Quote(name), FormatHostPort(meta.host, meta.port), Quote(answers)));
  }
  return {};
}

Result<void> HttpMetadata::Notify(std::string_view name, const Notification& notification) {
  MC_TRY_ASSIGN(const RpcMeta meta, GetRpcMeta(name));
  return link_.client().SendNotify(meta.host, meta.port, notification);
}

}  // namespace mooncake::transfer
