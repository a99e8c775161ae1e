// What TransferEngine.get_engine() gives and the store's setup(engine=...) takes. One type for both
// modules.
//
// Thread-safety: any thread.
#pragma once

#include <memory>
#include <utility>

#include "mooncake-common/src/concurrency/per_process.h"
#include "mooncake-integration/live_objects.h"
#include "mooncake-integration/unlocked.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

namespace mooncake::integration {

class InnerTransferEngine {
 public:
  InnerTransferEngine() = default;
  ~InnerTransferEngine() { LiveObjects<InnerTransferEngine>::Remove(this); }
  InnerTransferEngine(const InnerTransferEngine&) = delete;
  InnerTransferEngine& operator=(const InnerTransferEngine&) = delete;

  // Null before initialize(), after Close(), and in a forked process, whose parent's it stays.
  // Calls share it for their time.
  [[nodiscard]] std::shared_ptr<transfer::Engine> engine() {
    return engine_.With([](const auto& engine) { return engine; });
  }
  void Set(std::unique_ptr<transfer::Engine> engine) {
    // It may end by asking a metadata server in this very interpreter.
    std::shared_ptr<transfer::Engine> shared(engine.release(), DeleteUnlocked<transfer::Engine>);
    engine_.With([&](auto& mine) { mine.swap(shared); });
  }
  // Ends calls that are under way, and the engine with the last of them.
  void Close() {
    if (const auto engine = engine_.With([](auto& mine) { return std::exchange(mine, nullptr); })) {
      engine->Stop();
    }
  }

 private:
  PerProcess<std::shared_ptr<transfer::Engine>> engine_;
};

}  // namespace mooncake::integration
