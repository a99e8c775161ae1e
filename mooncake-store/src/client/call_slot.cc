#include "mooncake-store/src/client/call_slot.h"

#include <algorithm>

#include "mooncake-common/src/base/mix.h"

namespace mooncake::store {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(5);
constexpr Duration kLongestBackoff = std::chrono::milliseconds(500);

}  // namespace

void CallSlot::Begin(Instant now, Duration patience, std::uint64_t seed) {
  MC_CHECK(state_ == State::kIdle);
  state_ = State::kToSend;
  failures_ = 0;
  seed_ = seed;
  send_at_ = now;
  give_up_at_ = now + patience;
}

void CallSlot::Sent(Instant now) {
  MC_CHECK(state_ == State::kToSend);
  state_ = State::kSent;
  sent_at_ = now;
}

bool CallSlot::Failed(const Error& why, Instant now) {
  MC_CHECK(state_ == State::kSent);
  ++failures_;
  if (now >= give_up_at_ || why.code == ErrorCode::kCancelled ||
      why.code == ErrorCode::kInvalidArgument) {
    state_ = State::kIdle;
    return false;
  }
  const Duration backoff =
      std::min(kLongestBackoff, kFirstBackoff * (1 << std::min(failures_ - 1, 10U)));
  const auto spread = static_cast<std::uint64_t>(backoff.count());
  send_at_ = now + backoff / 2 + Duration(Mix64(seed_ + failures_) % spread);
  state_ = State::kToSend;
  return true;
}

}  // namespace mooncake::store
