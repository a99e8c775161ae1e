#include "mooncake-store/src/client/heartbeat.h"

#include <string>
#include <utility>

#include "mooncake-common/src/base/log.h"
#include "mooncake-store/src/client/membership.h"

namespace mooncake::store {

Result<void> Heartbeat::Start() {
  MC_TRY_ASSIGN(thread_, Thread::Start("mc-heartbeat", [this] { Run(); }));
  return {};
}

void Heartbeat::Stop() {
  stopping_ = true;
  calls_.Wake();
  thread_.Join();
}

void Heartbeat::Run() {
  HeartbeatOperation operation(core_);
  CallContext context;
  std::string told;
  for (;;) {
    if (stopping_) {
      operation.Stop();
    }
    const Action action = operation.Next(SteadyClock::Get().Now());
    switch (action.kind) {
      case ActionKind::kCall:
        calls_.Send(action, context);
        break;
      case ActionKind::kWait:
        calls_.Wait(action.until, Duration::zero());
        calls_.Report(operation, context);
        // Once for each trouble, and once when it is over.
        if (operation.trouble() != told) {
          told = operation.trouble();
          if (told.empty()) {
            MC_LOG_INFO("master {} answers again", master_.address());
          } else {
            MC_LOG_WARNING("heartbeat to master {}: {}", master_.address(), told);
          }
        }
        break;
      case ActionKind::kForget:
      case ActionKind::kTransfer:
        break;
      case ActionKind::kDone:
        return;
    }
  }
}

}  // namespace mooncake::store
