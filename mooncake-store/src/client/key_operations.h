// The plain questions about keys, and every other single exchange with the master.
//
// ExistOperation and RemoveOperation take any number of keys, in windows one after another.
// CallOperation carries one request as it is: mounts, removals by pattern, clears.
//
// Thread-safety: see Operation.
// Ownership:     keys and requests stay the caller's until kDone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mooncake-store/src/client/call_slot.h"
#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/failure.h"
#include "mooncake-store/src/client/operation.h"

namespace mooncake::store {

// Always asks the master; each key found is leased.
class ExistOperation final : public Operation {
 public:
  explicit ExistOperation(ClientCore& core) : core_(core) {}

  void Start(std::span<const std::string_view> keys);

  [[nodiscard]] Action Next(Instant now) override;
  void OnReply(std::uint32_t tag, Instant now) override;
  void OnCallFailed(std::uint32_t tag, const Error& why, Instant now) override;

  // One a key, after kDone: 1, 0, or a negative code.
  [[nodiscard]] std::span<const std::int32_t> results() const { return results_; }
  [[nodiscard]] const FailureLog& failures() const { return failures_; }

 private:
  void FailWindow(StoreCode code, std::string_view cause);

  ClientCore& core_;
  std::span<const std::string_view> keys_;
  std::uint64_t chain_ = 0;
  std::uint32_t first_ = 0;  // The window under way is [first_, end_).
  std::uint32_t end_ = 0;
  CallSlot slot_;
  BatchExistRequest request_;
  BatchExistReply reply_;
  std::vector<std::int32_t> results_;
  FailureLog failures_;
};

// Forgets the keys in the descriptor cache too. A key that is missing when a lost try is repeated
// counts as removed by it.
class RemoveOperation final : public Operation {
 public:
  explicit RemoveOperation(ClientCore& core) : core_(core) {}

  void Start(std::span<const std::string_view> keys, bool force);

  [[nodiscard]] Action Next(Instant now) override;
  void OnReply(std::uint32_t tag, Instant now) override;
  void OnCallFailed(std::uint32_t tag, const Error& why, Instant now) override;

  // One a key, after kDone.
  [[nodiscard]] std::span<const StoreCode> results() const { return results_; }
  [[nodiscard]] const FailureLog& failures() const { return failures_; }

 private:
  void Settle(std::uint32_t item, StoreCode code, std::string_view cause);

  ClientCore& core_;
  std::span<const std::string_view> keys_;
  bool force_ = false;
  std::uint32_t first_ = 0;
  std::uint32_t end_ = 0;
  CallSlot slot_;
  BatchRemoveRequest request_;
  BatchRemoveReply reply_;
  std::vector<StoreCode> results_;
  FailureLog failures_;
};

// One request, repeated until it is answered or the patience given is over; `request.caller` is
// filled in at each try. The reply's meaning, its code included, is the caller's business.
template <typename Request, typename Reply>
class CallOperation final : public Operation {
 public:
  explicit CallOperation(ClientCore& core) : core_(core) {}

  // One try takes `try_limit` at most, and never more than the client's rpc_timeout.
  void Start(Request request, Duration patience, Duration try_limit = Duration::max()) {
    request_ = std::move(request);
    patience_ = patience;
    try_limit_ = std::min(try_limit, core_.options().rpc_timeout);
    begun_ = false;
    code_ = StoreCode::kOk;
    cause_.clear();
  }

  [[nodiscard]] Action Next(Instant now) override {
    if (!begun_) {
      begun_ = true;
      slot_.Begin(now, patience_, core_.NextChain());
    }
    if (slot_.ShouldSend(now)) {
      slot_.Sent(now);
      request_.caller = core_.MakeCaller();
      if constexpr (requires { request_.repeated; }) {
        request_.repeated = slot_.ambiguous();
      }
      return Action::Call(0, now + try_limit_, Exchange<Request, Reply>{&request_, &reply_});
    }
    return slot_.idle() ? Action::Done() : Action::Wait(slot_.WakeAt());
  }
  void OnReply(std::uint32_t /*tag*/, Instant /*now*/) override { slot_.Answered(); }
  void OnCallFailed(std::uint32_t /*tag*/, const Error& why, Instant now) override {
    if (!slot_.Failed(why, now)) {
      code_ = CodeOfCallFailure(why);
      cause_ = why.message;
    }
  }

  // After kDone. kOk: reply() holds the answer; else nobody answered, and cause() says why.
  [[nodiscard]] StoreCode code() const { return code_; }
  [[nodiscard]] const std::string& cause() const { return cause_; }
  [[nodiscard]] const Reply& reply() const { return reply_; }

 private:
  ClientCore& core_;
  CallSlot slot_;
  Duration patience_{};
  Duration try_limit_{};
  bool begun_ = false;
  Request request_;
  Reply reply_;
  StoreCode code_ = StoreCode::kOk;
  std::string cause_;
};

using MountOperation = CallOperation<MountSegmentRequest, MountSegmentReply>;
using UnmountOperation = CallOperation<UnmountSegmentRequest, UnmountSegmentReply>;
using RemoveByRegexOperation = CallOperation<RemoveByRegexRequest, RemoveManyReply>;
using GetReplicasByRegexOperation =
    CallOperation<GetReplicasByRegexRequest, GetReplicasByRegexReply>;
using QuerySegmentsOperation = CallOperation<QuerySegmentsRequest, QuerySegmentsReply>;
using RemoveAllOperation = CallOperation<RemoveAllRequest, RemoveManyReply>;
using ReplicaClearOperation = CallOperation<BatchReplicaClearRequest, BatchReplicaClearReply>;

}  // namespace mooncake::store
