#include "mooncake-store/src/client/pending_calls.h"

#include <algorithm>
#include <span>
#include <utility>

namespace mooncake::store {

void PendingCalls::Send(const Action& action, CallContext& context) {
  Call& call = calls_.emplace_back(
      Call{.tag = action.tag, .number = next_number_++, .call = action.call, .started = {}});
  call.started = master_.Start(
      call.call, action.until, context,
      [mailbox = mailbox_, number = call.number](Result<std::span<const std::byte>> reply) {
        Answer answer{.number = number, .outcome = {}, .body = {}};
        if (reply) {
          answer.body.assign(reply->begin(), reply->end());
        } else {
          answer.outcome = std::unexpected(std::move(reply).error());
        }
        {
          const MutexLock lock(mailbox->mutex);
          mailbox->answers.push_back(std::move(answer));
        }
        mailbox->arrived.Notify();
      });
}

void PendingCalls::Forget(std::uint32_t tag) {
  const auto call = std::ranges::find(calls_, tag, &Call::tag);
  if (call != calls_.end()) {
    call->started.Cancel();
    calls_.erase(call);
  }
}

void PendingCalls::Wait(Instant until, Duration spin) {
  static_cast<void>(mailbox_->arrived.Wait(until, spin));
}

void PendingCalls::Report(Operation& operation, CallContext& context) {
  if (!mailbox_->arrived.IsSet()) {
    return;
  }
  mailbox_->arrived.Reset();
  std::vector<Answer> answers;
  {
    const MutexLock lock(mailbox_->mutex);
    answers.swap(mailbox_->answers);
  }
  for (Answer& answer : answers) {
    const auto call = std::ranges::find(calls_, answer.number, &Call::number);
    if (call == calls_.end()) {
      continue;  // Forgotten meanwhile.
    }
    const std::uint32_t tag = call->tag;
    const MasterCall asked = call->call;
    calls_.erase(call);
    const auto outcome =
        answer.outcome ? MasterLink::Take(asked, answer.body, context) : std::move(answer.outcome);
    const Instant now = SteadyClock::Get().Now();
    if (outcome) {
      operation.OnReply(tag, now);
    } else {
      operation.OnCallFailed(tag, outcome.error(), now);
    }
  }
}

}  // namespace mooncake::store
