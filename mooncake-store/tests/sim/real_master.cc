#include "mooncake-store/tests/sim/real_master.h"

#include <type_traits>
#include <variant>

#include "mooncake-store/src/master/eviction/checked_policy.h"
#include "mooncake-store/src/master/eviction/policies.h"

namespace mooncake::store {

RealMaster::RealMaster(const MasterOptions& options, EvictionPolicyKind policy, OnGone on_gone)
    : on_gone_(std::move(on_gone)),
      master_(std::make_unique<Master>(
          options, std::make_unique<CheckedPolicy>(MakePolicy(policy, options.seed)), this)) {}

void RealMaster::Serve(const MasterCall& call, Instant now) {
  std::visit(
      [&](const auto& exchange) {
        using Kind = std::decay_t<decltype(exchange)>;
        if constexpr (!std::is_same_v<Kind, std::monostate>) {
          const auto& request = *exchange.request;
          auto& reply = *exchange.reply;
          if constexpr (std::is_same_v<Kind, Exchange<RemoveByRegexRequest, RemoveManyReply>> ||
                        std::is_same_v<Kind, Exchange<RemoveAllRequest, RemoveManyReply>>) {
            ObjectSweep sweep;
            reply = {.code = Master::Begin(request, sweep)};
            if (reply.code == StoreCode::kOk) {
              while (!master_->StepRemove(sweep, now)) {
              }
              reply.removed = sweep.removed;
            }
          } else if constexpr (std::is_same_v<Kind, Exchange<GetReplicasByRegexRequest,
                                                             GetReplicasByRegexReply>>) {
            ObjectSweep sweep;
            reply = {.code = Master::Begin(request, sweep)};
            if (reply.code == StoreCode::kOk) {
              while (!master_->StepGet(sweep, request.caller.client, now, reply)) {
              }
            }
          } else {
            master_->Handle(request, now, reply);
          }
        }
      },
      call);
}

void RealMaster::Tick(Instant now) {
  while (master_->Tick(now)) {
  }
}

std::string RealMaster::CheckAccounts() { return master_->CheckInvariants(); }

void RealMaster::OnObject(const ObjectEvent& event) {
  switch (event.kind) {
    case ObjectEventKind::kPutStarted:
      keys_[event.slot] = std::string(event.key);
      break;
    case ObjectEventKind::kPutDropped:
      keys_.erase(event.slot);
      break;
    case ObjectEventKind::kRemoved: {
      const auto found = keys_.find(event.slot);
      if (found != keys_.end()) {
        switch (event.reason) {
          case RemoveReason::kEvicted:
            on_gone_(found->second, GoneWhy::kEvicted);
            break;
          case RemoveReason::kReplaced:
            on_gone_(found->second, GoneWhy::kReplaced);
            break;
          default:
            on_gone_(found->second, GoneWhy::kRemoved);
        }
        keys_.erase(found);
      }
      break;
    }
    case ObjectEventKind::kReplicasLost:
      if (const auto found = keys_.find(event.slot); found != keys_.end()) {
        on_gone_(found->second, GoneWhy::kSegmentLost);
      }
      break;
    default:
      break;
  }
}

}  // namespace mooncake::store
