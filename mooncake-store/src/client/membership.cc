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

Action HeartbeatOperation::Next(Instant now) {
  if (stopping_) {
    return pinging_ || remounting_ ? Action::Wait(Instant::max()) : Action::Done();
  }
  if (remount_needed_ && !remounting_ && now >= next_remount_) {
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
  if (!pinging_ && now >= next_ping_) {
    pinging_ = true;
    next_ping_ = now + core_.options().heartbeat_interval;
    ping_request_.caller = core_.MakeCaller();
    ping_request_.view_version = core_.membership().view_version();
    return Action::Call(kPingTag, now + core_.options().heartbeat_timeout,
                        Exchange<PingRequest, PingReply>{&ping_request_, &ping_reply_});
  }
  const Instant remount_at = remount_needed_ && !remounting_ ? next_remount_ : Instant::max();
  return Action::Wait(std::min(remount_at, pinging_ ? Instant::max() : next_ping_));
}

void HeartbeatOperation::OnReply(std::uint32_t tag, Instant /*now*/) {
  if (tag == kPingTag) {
    pinging_ = false;
    OnPing();
  } else {
    remounting_ = false;
    OnRemount();
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
  if (tag == kPingTag) {
    pinging_ = false;
    core_.membership().master_reachable_ = false;
    trouble_ = FailureText(code, "ping the master", "", why.message);
  } else {
    remounting_ = false;
    RemountFailed(FailureText(code, "mount all segments again", "", why.message));
  }
}

}  // namespace mooncake::store
