// Between the engine's types and those of the classic interface.
//
// Thread-safety: pure functions.
#pragma once

#include <utility>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"
#include "mooncake-transfer-engine/include/transfer_engine.h"
#include "mooncake-transfer-engine/src/faces/error_numbers.h"

namespace mooncake {

[[nodiscard]] inline Status ToStatus(const Error& error) {
  return {static_cast<Status::Code>(transfer::StatusNumber(error.code)), error.ToString()};
}

template <typename T>
[[nodiscard]] Status ToStatus(const Result<T>& result) {
  return result ? Status::OK() : ToStatus(result.error());
}

// For functions over batches: an id that the engine has not given out, or no more, is the caller's
// mistake there and says nothing about the metadata.
template <typename T>
[[nodiscard]] Status ToBatchStatus(const Result<T>& result) {
  if (!result && result.error().code == ErrorCode::kNotFound) {
    return {Status::Code::kInvalidArgument, result.error().ToString()};
  }
  return ToStatus(result);
}

[[nodiscard]] inline Error NotInitialised() {
  return {.code = ErrorCode::kInvalidArgument,
          .message = "the engine is not initialised; call init() first"};
}

[[nodiscard]] inline transfer::TransferRequest ToRequest(const TransferRequest& request) {
  return {.opcode = request.opcode == TransferRequest::READ ? transfer::Opcode::kRead
                                                            : transfer::Opcode::kWrite,
          .local = static_cast<std::byte*>(request.source),
          .segment = request.target_id,
          .remote_address = request.target_offset,
          .length_bytes = request.length};
}

}  // namespace mooncake
