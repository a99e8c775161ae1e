#include "mooncake-store/src/client/key_operations.h"

#include <algorithm>

#include "mooncake-store/src/client/key_window.h"

namespace mooncake::store {
namespace {

constexpr std::uint32_t kKeysPerWindow = 8192;

std::uint32_t EndOfKeys(std::span<const std::string_view> keys, std::uint32_t first) {
  return WindowEnd(
      first, static_cast<std::uint32_t>(keys.size()), kKeysPerWindow, UINT64_MAX,
      [keys](std::uint32_t i) { return keys[i].size(); }, [](std::uint32_t) { return 0U; });
}

void FillKeys(std::span<const std::string_view> keys, std::vector<std::string_view>& sent) {
  sent.resize(keys.size());
  std::ranges::transform(keys, sent.begin(), KeyToSend);
}

}  // namespace

void ExistOperation::Start(std::span<const std::string_view> keys) {
  keys_ = keys;
  chain_ = core_.NextChain();
  first_ = 0;
  end_ = 0;
  results_.assign(keys.size(), 0);
  failures_.Clear();
}

Action ExistOperation::Next(Instant now) {
  if (slot_.idle()) {
    first_ = end_;
    if (first_ == keys_.size()) {
      return Action::Done();
    }
    end_ = EndOfKeys(keys_, first_);
    FillKeys(keys_.subspan(first_, end_ - first_), request_.keys);
    request_.chain = ChainPosition{
        .chain_id = chain_, .position = first_, .total = static_cast<std::uint32_t>(keys_.size())};
    slot_.Begin(now, core_.options().master_patience, chain_);
  }
  if (slot_.ShouldSend(now)) {
    slot_.Sent(now);
    request_.caller = core_.MakeCaller();
    return Action::Call(0, now + core_.options().rpc_timeout,
                        Exchange<BatchExistRequest, BatchExistReply>{&request_, &reply_});
  }
  return Action::Wait(slot_.WakeAt());
}

void ExistOperation::OnReply(std::uint32_t /*tag*/, Instant /*now*/) {
  slot_.Answered();
  if (reply_.code != StoreCode::kOk || reply_.exists.size() != end_ - first_) {
    FailWindow(reply_.code == StoreCode::kOk ? StoreCode::kInternalError : reply_.code, "");
    return;
  }
  std::ranges::copy(reply_.exists, results_.begin() + first_);
}

void ExistOperation::OnCallFailed(std::uint32_t /*tag*/, const Error& why, Instant now) {
  if (!slot_.Failed(why, now)) {
    FailWindow(CodeOfCallFailure(why), why.message);
  }
}

void ExistOperation::FailWindow(StoreCode code, std::string_view cause) {
  for (std::uint32_t item = first_; item < end_; ++item) {
    results_[item] = ToInt(code);
    failures_.Add(
        item, code,
        failures_.Keeps(code) ? FailureText(code, "is_exist", keys_[item], cause) : std::string());
  }
}

void RemoveOperation::Start(std::span<const std::string_view> keys, bool force) {
  keys_ = keys;
  force_ = force;
  first_ = 0;
  end_ = 0;
  results_.assign(keys.size(), StoreCode::kInternalError);
  failures_.Clear();
}

Action RemoveOperation::Next(Instant now) {
  if (slot_.idle()) {
    first_ = end_;
    if (first_ == keys_.size()) {
      return Action::Done();
    }
    end_ = EndOfKeys(keys_, first_);
    request_.force = force_;
    FillKeys(keys_.subspan(first_, end_ - first_), request_.keys);
    slot_.Begin(now, core_.options().master_patience, core_.NextChain());
  }
  if (slot_.ShouldSend(now)) {
    slot_.Sent(now);
    request_.caller = core_.MakeCaller();
    return Action::Call(0, now + core_.options().rpc_timeout,
                        Exchange<BatchRemoveRequest, BatchRemoveReply>{&request_, &reply_});
  }
  return Action::Wait(slot_.WakeAt());
}

void RemoveOperation::OnReply(std::uint32_t /*tag*/, Instant /*now*/) {
  const bool repeated = slot_.ambiguous();
  slot_.Answered();
  const bool whole = reply_.code == StoreCode::kOk && reply_.codes.size() == end_ - first_;
  const StoreCode failed = reply_.code == StoreCode::kOk ? StoreCode::kInternalError : reply_.code;
  for (std::uint32_t item = first_; item < end_; ++item) {
    StoreCode code = whole ? reply_.codes[item - first_] : failed;
    if (repeated && code == StoreCode::kObjectNotFound) {
      code = StoreCode::kOk;
    }
    Settle(item, code, "");
  }
}

void RemoveOperation::OnCallFailed(std::uint32_t /*tag*/, const Error& why, Instant now) {
  if (slot_.Failed(why, now)) {
    return;
  }
  for (std::uint32_t item = first_; item < end_; ++item) {
    Settle(item, CodeOfCallFailure(why), why.message);
  }
}

void RemoveOperation::Settle(std::uint32_t item, StoreCode code, std::string_view cause) {
  results_[item] = code;
  core_.cache().Forget(keys_[item]);
  if (code != StoreCode::kOk) {
    failures_.Add(
        item, code,
        failures_.Keeps(code) ? FailureText(code, "remove", keys_[item], cause) : std::string());
  }
}

}  // namespace mooncake::store
