#include "mooncake-store/tests/sim/sim_client.h"

#include <vector>

namespace mooncake::store {
namespace {

// A client's threads each have a lane of their own.
constexpr std::uint32_t kLanes = 3;

}  // namespace

SimClient::SimClient(sim::Simulator& simulator, sim::Network& network, SimEngine& engine,
                     MasterAccess master, sim::ProcessId process, ClientOptions options)
    : simulator_(simulator),
      network_(network),
      engine_(engine),
      master_(std::move(master)),
      process_(process),
      core_(std::move(options)) {}

void SimClient::Run(Operation& operation, std::shared_ptr<void> keep,
                    std::move_only_function<void()> done) {
  auto running = std::make_shared<Running>();
  running->operation = &operation;
  running->keep = std::move(keep);
  running->done = std::move(done);
  ++running_;
  Drive(running);
}

void SimClient::StartHeartbeat() {
  auto heartbeat = std::make_shared<HeartbeatOperation>(core_);
  auto running = std::make_shared<Running>();
  running->operation = heartbeat.get();
  running->keep = heartbeat;
  Drive(running);
}

void SimClient::Drive(const std::shared_ptr<Running>& running) {
  while (!running->ended) {
    const Instant now = simulator_.Now();
    const Action action = running->operation->Next(now);
    switch (action.kind) {
      case ActionKind::kCall:
        Send(running, action);
        break;
      case ActionKind::kForget:
        running->calls.erase(action.tag);
        break;
      case ActionKind::kTransfer:
        engine_.Move(process_, *action.transfers, running->keep,
                     [this, running, tag = action.tag](std::vector<PieceFailure> failures) {
                       running->operation->OnTransfersDone(tag, failures, simulator_.Now());
                       Drive(running);
                     });
        break;
      case ActionKind::kWait: {
        const std::uint64_t serial = ++running->wake_serial;
        if (action.until != Instant::max()) {
          network_.RunOn(process_, std::max(Duration(1), action.until - now),
                         [this, running, serial] {
                           if (!running->ended && running->wake_serial == serial) {
                             Drive(running);
                           }
                         });
        }
        return;
      }
      case ActionKind::kDone:
        running->ended = true;
        running->calls.clear();
        --running_;
        running->done();
        return;
    }
  }
}

void SimClient::Send(const std::shared_ptr<Running>& running, const Action& action) {
  const std::uint32_t tag = action.tag;
  const std::uint64_t serial = running->next_serial++;
  MC_CHECK(running->calls.emplace(tag, serial).second);
  auto call = std::make_shared<OwnedCall>(action.call);
  const auto lane = static_cast<std::uint32_t>(simulator_.rng().Uniform(kLanes));
  network_.Call(
      process_, master_.process, lane,
      [this, call, running, tag, serial, original = action.call]() -> sim::Network::Reply {
        master_.serve(call->call(), simulator_.Now());
        return [this, call, running, tag, serial, original] {
          const auto waiting = running->calls.find(tag);
          if (waiting == running->calls.end() || waiting->second != serial) {
            return;
          }
          running->calls.erase(waiting);
          call->GiveReply(original);
          if (master_.on_reply) {
            master_.on_reply(original);
          }
          running->operation->OnReply(tag, simulator_.Now());
          Drive(running);
        };
      },
      [this, running, tag, serial](const Error& why) { Fail(running, tag, serial, why); });
  network_.RunOn(process_, action.until - simulator_.Now(), [this, running, tag, serial] {
    Fail(running, tag, serial, Error{ErrorCode::kTimeout, "no answer within the call's time"});
  });
}

void SimClient::Fail(const std::shared_ptr<Running>& running, std::uint32_t tag,
                     std::uint64_t serial, const Error& why) {
  const auto waiting = running->calls.find(tag);
  if (waiting == running->calls.end() || waiting->second != serial) {
    return;
  }
  running->calls.erase(waiting);
  running->operation->OnCallFailed(tag, why, simulator_.Now());
  Drive(running);
}

}  // namespace mooncake::store
