#include "mooncake-store/src/client/failure.h"

#include <fmt/format.h>

#include "mooncake-common/src/base/text.h"

namespace mooncake::store {

StoreCode CodeOfCallFailure(const Error& why) {
  switch (why.code) {
    case ErrorCode::kTimeout:
      return StoreCode::kRpcTimeout;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kMalformed:
      return StoreCode::kInvalidParams;
    default:
      return StoreCode::kRpcFail;
  }
}

bool IsPeerFault(const Error& why) {
  switch (why.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kAddressOverlapped:
    case ErrorCode::kCancelled:
      return false;
    default:
      return true;
  }
}

StoreCode CodeOfTransferFailure(const Error& why) {
  return why.code == ErrorCode::kInvalidArgument ? StoreCode::kInvalidParams
                                                 : StoreCode::kTransferFail;
}

std::string_view NextStep(StoreCode code) {
  switch (code) {
    case StoreCode::kNoAvailableHandle:
      return "enlarge the pool, unpin objects, or raise MC_STORE_PUT_WAIT_MS";
    case StoreCode::kInvalidParams:
      return "correct the arguments; retrying will not help";
    case StoreCode::kObjectNotFound:
      return "it was never put, or was removed or evicted; put it again";
    case StoreCode::kReplicaIsNotReady:
      return "a put of it is under way; ask again";
    case StoreCode::kInvalidReplica:
      return "none of its replicas is in memory; this build reads memory only";
    case StoreCode::kObjectHasLease:
      return "a reader may be using it; wait for its lease to end or remove with force";
    case StoreCode::kObjectAlreadyExists:
      return "the first writer's bytes are kept; upsert replaces them";
    case StoreCode::kLeaseExpired:
      return "it was removed or replaced while it was read; get it again";
    case StoreCode::kTransferFail:
      return "check that the peer is alive and reachable";
    case StoreCode::kRpcFail:
    case StoreCode::kRpcTimeout:
      return "check that the master runs and is reachable";
    case StoreCode::kSegmentNotFound:
      return "its owner has left; put the object again";
    default:
      return "";
  }
}

std::string FailureText(StoreCode code, std::string_view verb, std::string_view key,
                        std::string_view cause) {
  std::string text = fmt::format("{} ({}): {}", StoreCodeName(code), ToInt(code), verb);
  if (!key.empty()) {
    text += ' ';
    text += Quote(key);
  }
  if (!cause.empty()) {
    text += ": ";
    text += cause;
  }
  if (const std::string_view step = NextStep(code); !step.empty()) {
    text += "; ";
    text += step;
  }
  return text;
}

void FailureLog::Clear() {
  kept_.clear();
  told_ = 0;
  failed_ = 0;
  existed_ = 0;
}

void FailureLog::Add(std::uint32_t item, StoreCode code, std::string text) {
  const bool keeps = Keeps(code);
  if (code == StoreCode::kObjectAlreadyExists) {
    ++existed_;
  } else if (failed_++ == 0) {
    told_ = kept_.size();
  }
  if (keeps) {
    kept_.push_back(Failure{.item = item, .code = code, .text = std::move(text)});
  }
}

StoreCode FailureLog::code() const { return kept_.empty() ? StoreCode::kOk : kept_[told_].code; }

std::string FailureLog::Summary() const {
  if (kept_.empty()) {
    return "";
  }
  const std::uint64_t alike = failed_ > 0 ? failed_ : existed_;
  return alike == 1 ? kept_[told_].text
                    : fmt::format("{} (and {} more keys {})", kept_[told_].text, alike - 1,
                                  failed_ > 0 ? "failed" : "existed");
}

}  // namespace mooncake::store
