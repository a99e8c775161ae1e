// What TransferEngine.get_engine() gives and the store's setup(engine=...) takes. One type for both
// modules.
#pragma once

#include <memory>

#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

namespace mooncake::integration {

struct InnerTransferEngine {
  std::shared_ptr<transfer::Engine> engine;
};

}  // namespace mooncake::integration
