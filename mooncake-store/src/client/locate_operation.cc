#include "mooncake-store/src/client/locate_operation.h"

#include <algorithm>

#include "mooncake-store/src/client/key_window.h"

namespace mooncake::store {

void LocateOperation::Start(std::span<const std::string_view> keys) {
  keys_ = keys;
  chain_ = core_.NextChain();
  next_ = 0;
  results_.assign(keys.size(), {});
  failures_.Clear();
}

Action LocateOperation::Next(Instant now) {
  for (;;) {
    if (lookup_.TakeFinished()) {
      Take();
    }
    if (!lookup_.active()) {
      if (next_ == keys_.size()) {
        return Action::Done();
      }
      const auto count = std::min<std::uint32_t>(core_.options().window_keys,
                                                 static_cast<std::uint32_t>(keys_.size()) - next_);
      lookup_.Begin(core_, 0,
                    {.chain_id = chain_,
                     .position = next_,
                     .total = static_cast<std::uint32_t>(keys_.size())},
                    LeaseUse::kWhole, now);
      for (std::uint32_t i = 0; i < count; ++i, ++next_) {
        lookup_.Add(KeyToSend(keys_[next_]), next_);
      }
    }
    if (auto action = lookup_.Next(now)) {
      return *std::move(action);
    }
    if (lookup_.active()) {
      return Action::Wait(lookup_.WakeAt());
    }
  }
}

void LocateOperation::Take() {
  for (const Lookup::Answer& answer : lookup_.answers()) {
    results_[answer.item] = {.code = answer.code, .location = answer.location};
    if (answer.code != StoreCode::kOk) {
      failures_.Add(answer.item, answer.code,
                    failures_.Keeps(answer.code)
                        ? FailureText(answer.code, "locate", keys_[answer.item], lookup_.cause())
                        : std::string());
    }
  }
}

}  // namespace mooncake::store
