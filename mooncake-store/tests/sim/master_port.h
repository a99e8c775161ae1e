// The master as the simulated network sees it: one life of it, and the faults that are planted
// there to prove that the checkers see them.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-store/src/client/operation.h"

namespace mooncake::store {

class MasterPort {
 public:
  virtual ~MasterPort() = default;

  // Carries out the call and fills in its reply.
  virtual void Serve(const MasterCall& call, Instant now) = 0;
  // Time passes: called often.
  virtual void Tick(Instant now) = 0;
  // What is wrong with its own accounts; empty = they agree.
  [[nodiscard]] virtual std::string CheckAccounts() = 0;
};

}  // namespace mooncake::store
