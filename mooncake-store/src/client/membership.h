// What this client offers and whether the master knows it: the segments that should be mounted, the
// master's view as last heard, and the heartbeat that keeps both alive.
//
// A segment is wanted from before its mount is sent until before its unmount is sent, so that a
// master that starts anew in between is told of it by the next heartbeat. One whose mount or
// unmount got no answer may be mounted, or become so when the lost call is carried out late: it is
// retracted, and the heartbeat unmounts it until the master says that it is gone.
//
// Thread-safety: Membership: any thread, one leaf lock inside. HeartbeatOperation: its driver's.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/client/operation.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

class ClientCore;

class Membership {
 public:
  // From now on a remount includes the segment. A second call with its id replaces it.
  void Want(const SegmentInfo& segment);
  void Unwant(const Uuid& id);
  [[nodiscard]] std::vector<SegmentInfo> Wanted() const;
  // Not wanted any more, and perhaps still mounted: its memory must stay until the client ends.
  void Retract(const Uuid& id);
  [[nodiscard]] std::vector<Uuid> Retracted() const;

  // 0 = never heard.
  [[nodiscard]] std::uint64_t view_version() const { return view_version_.load(); }
  // Whether the last ping was answered; true before the first, as set-up has just heard of it.
  [[nodiscard]] bool master_reachable() const { return master_reachable_.load(); }
  // How often all segments were mounted again.
  [[nodiscard]] std::uint64_t remounts() const { return remounts_.load(); }

 private:
  friend class HeartbeatOperation;

  mutable Mutex mutex_;
  std::vector<SegmentInfo> wanted_ MC_GUARDED_BY(mutex_);
  std::vector<Uuid> retracted_ MC_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> view_version_{0};
  std::atomic<bool> master_reachable_{true};
  std::atomic<std::uint64_t> remounts_{0};
};

// Pings as long as the client lives, mounts everything again when the master asks for it, and
// unmounts what is retracted. A new
// view of the master empties the descriptor cache and the segment table: its numbers mean something
// else.
class HeartbeatOperation final : public Operation {
 public:
  explicit HeartbeatOperation(ClientCore& core) : core_(core) {}

  [[nodiscard]] Action Next(Instant now) override;
  void OnReply(std::uint32_t tag, Instant now) override;
  void OnCallFailed(std::uint32_t tag, const Error& why, Instant now) override;

  // Next() says kDone once nothing is pending any more.
  void Stop() { stopping_ = true; }

  // What the last failed ping or remount met; empty when all is well.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  enum Tag : std::uint32_t { kPingTag = 1, kRemountTag = 2, kRetractTag = 3 };

  void OnPing();
  void OnRemount();
  [[nodiscard]] std::optional<Action> Ping(Instant now);
  [[nodiscard]] std::optional<Action> Remount(Instant now);
  [[nodiscard]] std::optional<Action> Retract(Instant now);
  // Tries again one heartbeat later.
  void RemountFailed(std::string trouble);

  ClientCore& core_;
  bool pinging_ = false;
  bool remounting_ = false;
  bool remount_needed_ = false;
  Instant next_ping_{};  // The first at once.
  Instant next_remount_{};
  bool retracting_ = false;
  Instant next_retract_{};
  bool stopping_ = false;
  PingRequest ping_request_;
  PingReply ping_reply_;
  ReMountSegmentsRequest remount_request_;
  ReMountSegmentsReply remount_reply_;
  UnmountSegmentRequest retract_request_;
  UnmountSegmentReply retract_reply_;
  std::string trouble_;
};

}  // namespace mooncake::store
