// One question to the master that is repeated until it is answered or patience ends: when to send,
// when to send again, and whether an earlier try may have been carried out.
//
// Retries back off from 5 ms to 500 ms, spread by a seed so that clients of a master that returns
// do not arrive together.
//
// Thread-safety: none; part of an operation.
#pragma once

#include <cstdint>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

class CallSlot {
 public:
  // A new question: to be sent at once, given up `patience` from now (after the try then under
  // way).
  void Begin(Instant now, Duration patience, std::uint64_t seed);

  [[nodiscard]] bool idle() const { return state_ == State::kIdle; }
  [[nodiscard]] bool under_way() const { return state_ == State::kSent; }
  [[nodiscard]] bool ShouldSend(Instant now) const {
    return state_ == State::kToSend && now >= send_at_;
  }
  // When ShouldSend() becomes true; Instant::max() while there is nothing to send.
  [[nodiscard]] Instant WakeAt() const {
    return state_ == State::kToSend ? send_at_ : Instant::max();
  }

  void Sent(Instant now);
  // From when a lease in the answer counts.
  [[nodiscard]] Instant sent_at() const { return sent_at_; }

  void Answered() { state_ = State::kIdle; }
  // Whether it will be sent again; else the question is given up, and the slot idle. A cancelled
  // call is not sent again: its client is closing. Nor is one that the master refused in words.
  [[nodiscard]] bool Failed(const Error& why, Instant now);
  // Some try before the last one got no answer, and may have been carried out.
  [[nodiscard]] bool ambiguous() const { return failures_ > 0; }

 private:
  enum class State : std::uint8_t { kIdle, kToSend, kSent };

  State state_ = State::kIdle;
  std::uint32_t failures_ = 0;
  std::uint64_t seed_ = 0;
  Instant send_at_{};
  Instant sent_at_{};
  Instant give_up_at_{};
};

}  // namespace mooncake::store
