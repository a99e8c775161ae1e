// A call on its way through the simulated network: a copy of the request that owns its keys, since
// the operation that sent it may be gone when it arrives, and a place for the reply.
//
// Thread-safety: none.
#pragma once

#include <memory>

#include "mooncake-store/src/client/operation.h"

namespace mooncake::store {

class OwnedCall {
 public:
  explicit OwnedCall(const MasterCall& original);
  ~OwnedCall();
  OwnedCall(const OwnedCall&) = delete;
  OwnedCall& operator=(const OwnedCall&) = delete;

  // The copy, with its own reply.
  [[nodiscard]] MasterCall call() const;
  // Copies the reply to where `original` wants it. Same kind of call.
  void GiveReply(const MasterCall& original) const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace mooncake::store
