#include "mooncake-store/src/client/membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/failure.h"

namespace mooncake::store {

void Membership::Want(const SegmentInfo& segment) {
  const MutexLock lock(mutex_);
  std::erase_if(wanted_, [&](const SegmentInfo& known) { return known.id == segment.id; });
  wanted_.push_back(segment);
}

void Membership::Unwant(const Uuid& id) {
  const MutexLock lock(mutex_);
  std::erase_if(wanted_, [&](const SegmentInfo& known) { return known.id == id; });
}

std::vector<SegmentInfo> Membership::Wanted() const {
  const MutexLock lock(mutex_);
  return wanted_;
}

void Membership::Retract(const Uuid& id) {
  const MutexLock lock(mutex_);
  std::erase_if(wanted_, [&](const SegmentInfo& known) { return known.id == id; });
  if (std::ranges::find(retracted_, id) == retracted_.end()) {
    retracted_.push_back(id);
  }
}

std::vector<Uuid> Membership::Retracted() const {
  const MutexLock lock(mutex_);
  return retracted_;
}

Action HeartbeatOperation::Next(Instant now) {
  if (stopping_) {
    return pinging_ || remounting_ || retracting_ ? Action::Wait(Instant::max()) : Action::Done();
  }
  for (const auto due :
       {&HeartbeatOperation::Remount, &HeartbeatOperation::Ping, &HeartbeatOperation::Retract}) {
    if (auto action = (this->*due)(now)) {
      return *action;
    }
  }
  const Instant remount_at = remount_needed_ && !remounting_ ? next_remount_ : Instant::max();
  return Action::Wait(std::min(remount_at, pinging_ ? Instant::max() : next_ping_));
}

std::optional<Action> HeartbeatOperation::Remount(Instant now) {
  if (!remount_needed_ || remounting_ || now < next_remount_) {
    return std::nullopt;
  }
  remount_needed_ = false;
  remounting_ = true;
  next_remount_ = now + core_.options().heartbeat_interval;
  // Asked afresh every time: meanwhile a segment may have come or gone.
  remount_request_.caller = core_.MakeCaller();
  remount_request_.segments = core_.membership().Wanted();
  return Action::Call(
      kRemountTag, now + core_.options().rpc_timeout,
      Exchange<ReMountSegmentsRequest, ReMountSegmentsReply>{&remount_request_, &remount_reply_});
}

std::optional<Action> HeartbeatOperation::Ping(Instant now) {
  if (pinging_ || now < next_ping_) {
    return std::nullopt;
  }
  pinging_ = true;
  next_ping_ = now + core_.options().heartbeat_interval;
  ping_request_.caller = core_.MakeCaller();
  ping_request_.view_version = core_.membership().view_version();
  return Action::Call(kPingTag, now + core_.options().heartbeat_timeout,
                      Exchange<PingRequest, PingReply>{&ping_request_, &ping_reply_});
}

// Beside a ping, so without a wake-up of its own: one segment a heartbeat.
std::optional<Action> HeartbeatOperation::Retract(Instant now) {
  if (retracting_ || now < next_retract_) {
    return std::nullopt;
  }
  const auto retracted = core_.membership().Retracted();
  if (retracted.empty()) {
    return std::nullopt;
  }
  retracting_ = true;
  next_retract_ = now + core_.options().heartbeat_interval;
  retract_request_ = {.caller = core_.MakeCaller(), .segment = retracted.front()};
  return Action::Call(
      kRetractTag, now + core_.options().rpc_timeout,
      Exchange<UnmountSegmentRequest, UnmountSegmentReply>{&retract_request_, &retract_reply_});
}

void HeartbeatOperation::OnReply(std::uint32_t tag, Instant /*now*/) {
  switch (tag) {
    case kPingTag:
      pinging_ = false;
      OnPing();
      break;
    case kRemountTag:
      remounting_ = false;
      OnRemount();
      break;
    default:
      retracting_ = false;
      if (retract_reply_.code == StoreCode::kOk) {
        Membership& membership = core_.membership();
        const MutexLock lock(membership.mutex_);
        std::erase(membership.retracted_, retract_request_.segment);
      }
  }
}

void HeartbeatOperation::OnPing() {
  Membership& membership = core_.membership();
  if (ping_reply_.code != StoreCode::kOk) {
    membership.master_reachable_ = false;
    trouble_ = FailureText(ping_reply_.code, "ping the master", "", "");
    return;
  }
  trouble_.clear();
  membership.master_reachable_ = true;
  const std::uint64_t known = membership.view_version_.exchange(ping_reply_.view_version);
  if (known != 0 && known != ping_reply_.view_version) {
    core_.cache().Clear();
    core_.segments().Clear();
  }
  if (ping_reply_.status == ClientStatus::kNeedRemount) {
    remount_needed_ = true;
  }
}

void HeartbeatOperation::OnRemount() {
  StoreCode code = remount_reply_.code;
  for (const MountSegmentReply& segment : remount_reply_.segments) {
    code = code == StoreCode::kOk ? segment.code : code;
  }
  if (code != StoreCode::kOk) {
    RemountFailed(FailureText(code, "mount all segments again", "", ""));
    return;
  }
  ++core_.membership().remounts_;
}

void HeartbeatOperation::RemountFailed(std::string trouble) {
  remount_needed_ = true;
  trouble_ = std::move(trouble);
}

void HeartbeatOperation::OnCallFailed(std::uint32_t tag, const Error& why, Instant /*now*/) {
  const StoreCode code = CodeOfCallFailure(why);
  const bool closing = why.code == ErrorCode::kCancelled;  // By ourselves, which is no trouble.
  switch (tag) {
    case kPingTag:
      pinging_ = false;
      core_.membership().master_reachable_ = false;
      if (!closing) {
        trouble_ = FailureText(code, "ping the master", "", why.message);
      }
      break;
    case kRemountTag:
      remounting_ = false;
      RemountFailed(closing ? trouble_
                            : FailureText(code, "mount all segments again", "", why.message));
      break;
    default:
      retracting_ = false;  // Again with the next ping.
  }
}

}  // namespace mooncake::store
