// Asks the master where objects lie and resolves the segments that this client has not met yet: one
// or two questions for a batch of keys. The answer also renews the leases of the keys.
//
// Part of an operation: the operation passes on Next() and the ends of the calls. The descriptor
// cache is fed here, but read by those who ask.
//
// Thread-safety: none of its own; uses ClientCore, which locks for itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-store/src/client/call_slot.h"
#include "mooncake-store/src/client/location.h"
#include "mooncake-store/src/client/operation.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

class ClientCore;

// Turns part of a reply's table into resolved extents. Asks nothing: replicas on segments that are
// not known are left out, their numbers go to `missing`. So are replicas whose extents do not hold
// `size_bytes`, or that are not in memory.
struct ResolveResult {
  std::shared_ptr<Location> location;
  bool complete = true;  // No segment was missing.
};
[[nodiscard]] ResolveResult Resolve(ClientCore& core, const ReplicaTable& table, ReplicaRange range,
                                    std::uint64_t size_bytes, std::vector<SegmentNumber>& missing);

class Lookup {
 public:
  struct Answer {
    std::uint32_t item = 0;  // As given to Begin().
    StoreCode code = StoreCode::kOk;
    std::shared_ptr<const Location> location;  // Only with kOk; at least one replica.
    Instant lease_until{};
  };

  // Keys must stay alive until the end; `tag` names the calls. `position` and `total` place the
  // keys in the chain of the whole call.
  void Begin(ClientCore& core, std::uint32_t tag, ChainPosition chain, LeaseUse use, Instant now);
  void Add(std::string_view key, std::uint32_t item);

  [[nodiscard]] bool active() const { return stage_ != Stage::kIdle; }
  // Gives up. True when a call is under way, which the driver has to forget.
  [[nodiscard]] bool Cancel();
  // True once after the last answer: answers() is complete and active() is over.
  [[nodiscard]] bool TakeFinished();
  [[nodiscard]] std::span<const Answer> answers() const { return answers_; }
  // Why there was no answer at all, when the codes of all answers are that of a failed call.
  [[nodiscard]] const std::string& cause() const { return cause_; }
  [[nodiscard]] Instant asked_at() const { return asked_at_; }

  [[nodiscard]] std::optional<Action> Next(Instant now);
  [[nodiscard]] Instant WakeAt() const { return slot_.WakeAt(); }
  void OnReply(Instant now);
  void OnCallFailed(const Error& why, Instant now);

 private:
  enum class Stage : std::uint8_t { kIdle, kAsking, kResolving };

  void Build(bool last_try);
  void Finish();
  void FailAll(StoreCode code);

  ClientCore* core_ = nullptr;
  std::uint32_t tag_ = 0;
  Stage stage_ = Stage::kIdle;
  bool finished_ = false;
  CallSlot slot_;
  Instant asked_at_{};
  std::vector<Answer> answers_;
  std::vector<std::uint64_t> tickets_;  // Of the descriptor cache, a key.
  std::vector<SegmentNumber> missing_;
  std::string cause_;
  BatchGetReplicasRequest request_;
  BatchGetReplicasReply reply_;
  QuerySegmentsRequest segments_request_;
  QuerySegmentsReply segments_reply_;
};

}  // namespace mooncake::store
