// Whether a message makes sense in itself: the one place that decides it. The codec asks for each
// message that it has decoded, so that master and client meet none that does not; what a value
// means to the master's state is the master's own question.
//
// Thread-safety: pure functions.
#pragma once

#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

// Errors, of all: kMalformed, which says what contradicts what.
[[nodiscard]] Result<void> Validate(const QuerySegmentsRequest& request);
[[nodiscard]] Result<void> Validate(const BatchExistRequest& request);
[[nodiscard]] Result<void> Validate(const BatchGetReplicasRequest& request);
[[nodiscard]] Result<void> Validate(const BatchPutStartRequest& request);
[[nodiscard]] Result<void> Validate(const BatchPutEndRequest& request);
[[nodiscard]] Result<void> Validate(const PingReply& reply);
[[nodiscard]] Result<void> Validate(const BatchExistReply& reply);
[[nodiscard]] Result<void> Validate(const BatchGetReplicasReply& reply);
[[nodiscard]] Result<void> Validate(const GetReplicasByRegexReply& reply);
[[nodiscard]] Result<void> Validate(const BatchPutStartReply& reply);

// The others make sense whatever they hold.
template <typename Message>
[[nodiscard]] Result<void> Validate(const Message& /*message*/) {
  return {};
}

}  // namespace mooncake::store
