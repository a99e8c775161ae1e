// Messages to bytes and back: FlatBuffers, verified before use. See store.fbs and
// docs/formats/store_rpc.md.
//
// Thread-safety: none; one Codec a connection or thread.
// Ownership:     what Encode() returns lives until the next Encode(); string_views of a decoded
//                request point into the body or into this codec: they live as long as the body,
//                and no longer than the next Decode().
// Allocation:    none once the codec and the message have grown to what passes through them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

class Codec {
 public:
  Codec();
  ~Codec();
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  // For every request and reply of messages.h.
  template <typename Message>
  [[nodiscard]] std::span<const std::byte> Encode(const Message& message);

  // Errors: kMalformed for bytes that are no such message, exceed the bounds of messages.h or
  // contradict themselves; nothing of `message` means anything then.
  template <typename Message>
  [[nodiscard]] Result<void> Decode(std::span<const std::byte> body, Message& message);

  class State;  // Of codec.cc.

 private:
  const std::unique_ptr<State> state_;
};

}  // namespace mooncake::store
