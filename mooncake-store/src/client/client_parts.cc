#include "mooncake-store/src/client/client_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-store/src/client/failure.h"
#include "mooncake-store/src/client/key_operations.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/factory.h"

namespace mooncake::store {
namespace {

// How long mounting keeps trying while the master does not answer, and how long closing does.
constexpr Duration kMountPatience = std::chrono::seconds(10);
constexpr Duration kSetupPause = std::chrono::milliseconds(100);
constexpr Duration kClosePatience = std::chrono::seconds(1);
// How long the master is asked at a time at the end of a grace period.
constexpr Duration kLetGoPatience = std::chrono::seconds(10);

std::unexpected<StoreError> Refuse(StoreCode code, std::string_view verb, std::string_view what,
                                   std::string_view cause) {
  return std::unexpected(StoreError{.code = code, .text = FailureText(code, verb, what, cause)});
}

// Wrong settings are the caller's to correct; the rest is not.
StoreCode CodeOf(const Error& why) {
  switch (why.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kNotSupported:
      return StoreCode::kInvalidParams;
    default:
      return StoreCode::kInternalError;
  }
}

}  // namespace

ClientParts::ClientParts(ClientOptions options, StoreName name)
    : name_(std::move(name)),
      core_(std::move(options)),
      reactor_({.thread_name = "mc-store"}),
      leaving_([this](const Uuid& segment) { return LetGo(segment); },
               core_.options().heartbeat_interval) {}

std::expected<void, StoreError> ClientParts::Open(const ClientSettings& settings) {
  if (auto connected = Connect(settings.master_address, settings.master_patience); !connected) {
    return connected;
  }
  if (auto started = StartEngine(settings); !started) {
    return started;
  }
  driver_.emplace(*link_, *engine_);
  if (settings.local_buffer_bytes > 0) {
    auto memory = engine_->AllocateManaged(settings.local_buffer_bytes,
                                           {.remote_accessible = false, .dedicated = true});
    if (!memory) {
      return Refuse(CodeOf(memory.error()), "allocate the local buffer", "",
                    memory.error().message);
    }
    local_memory_ = *memory;
    local_buffer_ = std::make_shared<LocalBuffer>(
        std::span(static_cast<std::byte*>(local_memory_), settings.local_buffer_bytes),
        engine_->HoldManaged(local_memory_));
  }
  if (settings.global_segment_bytes > 0) {
    if (auto mounted = Mount(settings.global_segment_bytes); !mounted) {
      return std::unexpected(mounted.error());
    }
  }
  heartbeat_.emplace(core_, *link_);
  if (auto started = heartbeat_->Start(); !started) {
    return Refuse(StoreCode::kInternalError, "start the heartbeat", "", started.error().message);
  }
  return {};
}

std::expected<void, StoreError> ClientParts::Connect(const std::string& master_address,
                                                     Duration patience) {
  if (auto started = reactor_.Start(); !started) {
    return Refuse(StoreCode::kInternalError, "start the reactor", "", started.error().message);
  }
  for (auto* const one : {&link_, &last_link_}) {
    auto link = MasterLink::Create(reactor_, master_address);
    if (!link) {
      return Refuse(CodeOf(link.error()), "reach master", master_address, link.error().message);
    }
    *one = *std::move(link);
  }
  const auto now = [] { return SteadyClock::Get().Now(); };
  const Instant give_up = now() + patience;
  Event pause;  // Nobody notifies it.
  for (;;) {
    const auto version =
        link_->ServiceReady(std::min(give_up, now() + core_.options().rpc_timeout));
    if (version) {
      return {};
    }
    // A refusal in words does not get better by asking again.
    const bool refused = version.error().code == ErrorCode::kNotSupported ||
                         version.error().code == ErrorCode::kPermissionDenied;
    if (refused || now() >= give_up) {
      return Refuse(StoreCode::kInternalError, "reach master", master_address,
                    version.error().message);
    }
    static_cast<void>(pause.Wait(std::min(give_up, now() + kSetupPause), Duration::zero()));
  }
}

std::expected<void, StoreError> ClientParts::StartEngine(const ClientSettings& settings) {
  if (settings.engine) {
    engine_ = settings.engine;
    return {};
  }
  // With the P2P handshake the engine is known by a port of its own; in a store of descriptors by
  // our name.
  const bool p2p = settings.metadata_server == "P2PHANDSHAKE";
  auto engine = transfer::CreateEngine({.local_name = p2p ? name_.host : name_.text,
                                        .metadata = settings.metadata_server,
                                        .protocol = settings.protocol,
                                        .devices = settings.devices});
  if (!engine) {
    return Refuse(CodeOf(engine.error()), "start the transfer engine as", name_.text,
                  engine.error().message);
  }
  engine_ = *std::move(engine);
  own_engine_ = true;
  return {};
}

void ClientParts::Close() {
  std::vector<OwnedSegment> segments;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) {
      return;
    }
    segments = segments_;
  }
  if (link_) {
    link_->Stop();  // Ends all calls to the master, a ping under way among them.
  }
  leaving_.Stop();
  if (heartbeat_) {
    heartbeat_->Stop();
  }
  if (driver_) {
    Driver driver(*last_link_, *engine_);
    const auto now = [] { return SteadyClock::Get().Now(); };
    const Instant give_up = now() + std::min(kClosePatience, core_.options().rpc_timeout);
    for (const OwnedSegment& segment : segments) {
      UnmountOperation unmount(core_);
      const Duration left = std::max<Duration>(give_up - now(), Duration::zero());
      unmount.Start({.caller = {}, .segment = segment.id}, left, left);
      driver.Run(unmount);
    }
    last_link_->Stop();
  }
  if (own_engine_) {
    engine_->Stop();  // Ends transfers under way.
  }
}

ClientParts::~ClientParts() {
  Close();
  heartbeat_.reset();
  driver_.reset();
  if (engine_) {
    for (const OwnedSegment& segment : segments_) {
      static_cast<void>(engine_->FreeManaged(segment.memory));
    }
    if (local_memory_ != nullptr) {
      static_cast<void>(engine_->FreeManaged(local_memory_));
    }
  }
  engine_.reset();
  link_.reset();
  last_link_.reset();
  reactor_.Stop();
}

std::expected<Uuid, StoreError> ClientParts::Mount(std::uint64_t length_bytes) {
  if (length_bytes < kMinSegmentBytes) {
    return Refuse(
        StoreCode::kInvalidParams, "mount segment", name_.text,
        fmt::format("it has {} bytes; lend at least {}, or none", length_bytes, kMinSegmentBytes));
  }
  auto memory = engine_->AllocateManaged(length_bytes, {.dedicated = true, .warm = true});
  if (!memory) {
    return Refuse(CodeOf(memory.error()), "allocate a segment for", name_.text,
                  memory.error().message);
  }
  Rng rng = Rng::FromOs();
  const SegmentInfo info{.id = GenerateUuid(rng),
                         .name = name_.text,
                         .base_address = reinterpret_cast<std::uintptr_t>(*memory),
                         .size_bytes = length_bytes,
                         .te_endpoint = engine_->name(),
                         .protocol = "tcp",
                         .host_id = core_.options().host_id};
  {
    const MutexLock lock(mutex_);
    segments_.push_back({.id = info.id, .memory = *memory});
  }
  core_.membership().Want(info);
  MountOperation mount(core_);
  mount.Start({.caller = {}, .segment = info}, kMountPatience);
  Run(mount);
  if (mount.code() != StoreCode::kOk) {
    core_.membership().Retract(info.id);
    return Refuse(mount.code(), "mount segment", name_.text, mount.cause());
  }
  if (mount.reply().code != StoreCode::kOk) {
    core_.membership().Unwant(info.id);
    Free(info.id);
    return Refuse(mount.reply().code, "mount segment", name_.text, "the master refused it");
  }
  return info.id;
}

StoreCode ClientParts::Unmount(const Uuid& segment, std::uint64_t grace_ms, Duration patience) {
  grace_ms = std::min(grace_ms, kMaxGraceMs);
  core_.membership().Unwant(segment);
  UnmountOperation unmount(core_);
  unmount.Start({.caller = {}, .segment = segment, .grace_ms = grace_ms}, patience);
  Run(unmount);
  if (unmount.code() != StoreCode::kOk) {
    core_.membership().Retract(segment);
    return unmount.code();
  }
  const StoreCode code = unmount.reply().code;
  if (grace_ms == 0 || code != StoreCode::kOk) {
    const bool freed = Free(segment);
    return freed || code != StoreCode::kOk ? code : StoreCode::kSegmentNotFound;
  }
  if (!Owns(segment)) {
    return StoreCode::kSegmentNotFound;
  }
  // The master's grace began before its answer, so it has ended by then.
  const Instant end = SteadyClock::Get().Now() + std::chrono::milliseconds(grace_ms);
  if (const auto added = leaving_.Add(segment, end); !added) {
    MC_LOG_WARNING("unmount segment {}: its memory stays until the client is closed: {}",
                   segment.ToString(), added.error().message);
  }
  return code;
}

bool ClientParts::LetGo(const Uuid& segment) {
  // Once more, for a master that is late: no reader is sent there when the memory goes.
  UnmountOperation unmount(core_);
  unmount.Start({.caller = {}, .segment = segment}, kLetGoPatience);
  Run(unmount);
  if (unmount.code() != StoreCode::kOk) {
    return false;
  }
  Free(segment);
  return true;
}

bool ClientParts::Owns(const Uuid& segment) {
  const MutexLock lock(mutex_);
  return std::ranges::find(segments_, segment, &OwnedSegment::id) != segments_.end();
}

bool ClientParts::Free(const Uuid& segment) {
  void* memory = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto owned = std::ranges::find(segments_, segment, &OwnedSegment::id);
    if (owned == segments_.end()) {
      return false;
    }
    memory = owned->memory;
    segments_.erase(owned);
  }
  static_cast<void>(engine_->FreeManaged(memory));
  return true;
}

}  // namespace mooncake::store
