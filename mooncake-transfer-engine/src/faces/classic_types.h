// Between the engine's types and those of the classic interface.
//
// Thread-safety: free functions, from any thread.
#pragma once

#include <limits>
#include <string>
#include <utility>

#include "mooncake-common/src/base/log.h"
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

// Logs a failure and returns its number.
inline int Failed(const char* what, const Error& error) {
  MC_LOG_ERROR("{}: {}", what, error.ToString());
  return transfer::ErrorNumber(error.code);
}

template <typename T>
int Number(const char* what, const Result<T>& result) {
  return result ? 0 : Failed(what, result.error());
}

// UINT64_MAX, and a line in the log, when it cannot be opened. `engine` may be null.
[[nodiscard]] inline SegmentHandle OpenedOrMax(transfer::Engine* engine, const std::string& name) {
  const auto segment = engine != nullptr ? engine->OpenSegment(name)
                                         : Result<SegmentHandle>(std::unexpected(NotInitialised()));
  if (!segment) {
    Failed("open a segment", segment.error());
    return std::numeric_limits<SegmentHandle>::max();
  }
  return *segment;
}

// The host at which peers reach the engine. Empty when its name says so: between peers the name is
// the address, with a central store it may be any label.
[[nodiscard]] inline std::string ReachedHost(const transfer::Engine& engine) {
  return engine.LocalDescriptor()->tcp_data_host;
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
