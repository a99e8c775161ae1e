// What callers are told when something fails: the public code, and a text that names key, peer,
// cause and next step. The one place where internal errors become store codes.
//
// Thread-safety: pure functions; FailureLog is a value of one call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/protocol/error_code.h"

namespace mooncake::store {

// Of a call to the master that got no answer.
[[nodiscard]] StoreCode CodeOfCallFailure(const Error& why);
// Of a transfer that failed.
[[nodiscard]] StoreCode CodeOfTransferFailure(const Error& why);
// Whether `why` is the peer's or the path's fault, so that another replica may do better; else the
// caller's own memory or arguments are at fault, and no replica will. Memory that is not registered
// is the peer's: the caller's own was looked at before the transfer.
[[nodiscard]] bool IsPeerFault(const Error& why);

// What a user can do about `code`; empty when the code says it all.
[[nodiscard]] std::string_view NextStep(StoreCode code);

// `OBJECT_NOT_FOUND (-704): get "key": <cause>; <next step>`. An empty key or cause is left out.
[[nodiscard]] std::string FailureText(StoreCode code, std::string_view verb, std::string_view key,
                                      std::string_view cause);

struct Failure {
  std::uint32_t item = 0;  // Index of the key in the call.
  StoreCode code = StoreCode::kOk;
  std::string text;
};

// The failures of one call, for last_error(), and the keys that a put met (kObjectAlreadyExists),
// which are told only when nothing failed. Keeps the first kKept with their texts and counts the
// rest, so that a batch of a million failures costs no more than one of a hundred.
class FailureLog {
 public:
  static constexpr std::size_t kKept = 100;

  void Clear();
  // Whether the next Add() of `code` would keep its text; lets callers skip formatting.
  [[nodiscard]] bool Keeps(StoreCode code) const {
    return kept_.size() < kKept || (failed_ == 0 && code != StoreCode::kObjectAlreadyExists);
  }
  void Add(std::uint32_t item, StoreCode code, std::string text);

  [[nodiscard]] const std::vector<Failure>& kept() const { return kept_; }
  [[nodiscard]] std::uint64_t count() const { return failed_ + existed_; }
  // Code and text for last_error(): the first failure, and how many more there were; without any,
  // the same of the keys that existed. A code of kOk and an empty text when there is nothing to
  // tell.
  [[nodiscard]] StoreCode code() const;
  [[nodiscard]] std::string Summary() const;

 private:
  std::vector<Failure> kept_;
  std::size_t told_ = 0;  // The one of kept_ that code() and Summary() are about.
  std::uint64_t failed_ = 0;
  std::uint64_t existed_ = 0;
};

}  // namespace mooncake::store
