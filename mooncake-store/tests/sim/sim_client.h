// One client process of a simulated cluster: the real ClientCore and the real operations, driven by
// events instead of threads.
//
// Thread-safety: none; driven by one Simulator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "mooncake-common/src/sim/network.h"
#include "mooncake-common/src/sim/simulator.h"
#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/membership.h"
#include "mooncake-store/src/client/operation.h"
#include "mooncake-store/tests/sim/owned_call.h"
#include "mooncake-store/tests/sim/sim_engine.h"

namespace mooncake::store {

// What a client sends its calls to. `serve` runs where and when the request arrives; `on_reply`, if
// any, may spoil an answer before the client sees it.
struct MasterAccess {
  sim::ProcessId process = 0;
  std::function<void(const MasterCall&, Instant)> serve;
  std::function<void(const MasterCall&)> on_reply;
};

class SimClient {
 public:
  SimClient(sim::Simulator& simulator, sim::Network& network, SimEngine& engine,
            MasterAccess master, sim::ProcessId process, ClientOptions options);

  [[nodiscard]] ClientCore& core() { return core_; }
  [[nodiscard]] sim::ProcessId process() const { return process_; }
  [[nodiscard]] std::size_t running() const { return running_; }

  // Drives `operation` to its end, then runs `done`, unless the process dies before. The operation
  // and all memory it uses must live as long as `keep`.
  void Run(Operation& operation, std::shared_ptr<void> keep, std::move_only_function<void()> done);

  // Heartbeats until the process dies.
  void StartHeartbeat();

 private:
  // One operation under way.
  struct Running {
    Operation* operation = nullptr;
    std::shared_ptr<void> keep;
    std::move_only_function<void()> done;
    // Calls without an answer yet, by tag; a serial number tells a late answer from a new call.
    std::map<std::uint32_t, std::uint64_t> calls;
    std::uint64_t next_serial = 1;
    std::uint64_t wake_serial = 0;
    bool ended = false;
  };

  void Drive(const std::shared_ptr<Running>& running);
  void Send(const std::shared_ptr<Running>& running, const Action& action);
  void Fail(const std::shared_ptr<Running>& running, std::uint32_t tag, std::uint64_t serial,
            const Error& why);

  sim::Simulator& simulator_;
  sim::Network& network_;
  SimEngine& engine_;
  const MasterAccess master_;
  const sim::ProcessId process_;
  ClientCore core_;
  std::size_t running_ = 0;
};

}  // namespace mooncake::store
