// Where objects lie, for callers that want to know rather than to read. Grants leases as every
// lookup does.
//
// Thread-safety: see Operation.
// Ownership:     keys stay the caller's until kDone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/failure.h"
#include "mooncake-store/src/client/location.h"
#include "mooncake-store/src/client/lookup.h"
#include "mooncake-store/src/client/operation.h"

namespace mooncake::store {

class LocateOperation final : public Operation {
 public:
  struct Result {
    StoreCode code = StoreCode::kInternalError;
    std::shared_ptr<const Location> location;  // Only with kOk.
  };

  explicit LocateOperation(ClientCore& core) : core_(core) {}

  void Start(std::span<const std::string_view> keys);

  [[nodiscard]] Action Next(Instant now) override;
  void OnReply(std::uint32_t /*tag*/, Instant now) override { lookup_.OnReply(now); }
  void OnCallFailed(std::uint32_t /*tag*/, const Error& why, Instant now) override {
    lookup_.OnCallFailed(why, now);
  }

  // One a key, after kDone.
  [[nodiscard]] std::span<const Result> results() const { return results_; }
  [[nodiscard]] const FailureLog& failures() const { return failures_; }

 private:
  void Take();

  ClientCore& core_;
  std::span<const std::string_view> keys_;
  std::uint64_t chain_ = 0;
  std::uint32_t next_ = 0;  // First key that has not been asked for.
  Lookup lookup_;
  std::vector<Result> results_;
  FailureLog failures_;
};

}  // namespace mooncake::store
