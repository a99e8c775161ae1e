// Whether one path may carry slices: errors in a row pause it, the pause grows each time and is
// remembered, and a paused path comes back through probes at low weight.
//
// Sans-IO: time is an argument. Thread-safety: none; the owner guards it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mooncake-common/src/base/clock.h"

namespace mooncake::transfer {

struct HealthOptions {
  std::uint32_t errors_to_pause = 2;  // In a row.
  Duration first_pause = std::chrono::milliseconds(5);
  // All attempts of a slice (MC_RETRY_CNT) at a peer that is gone end within about a second, also
  // when others have found it gone before.
  Duration longest_pause = std::chrono::milliseconds(100);
  std::uint32_t probes_to_trust = 4;       // Successes in a row that end the probing.
  std::uint32_t successes_to_forget = 64;  // After these the next pause is one step shorter again.
};

class PathHealth {
 public:
  explicit PathHealth(const HealthOptions& options = {})
      : options_(options), next_pause_(options.first_pause) {}

  // Returns the instant until which the path is better left alone (`now` when it need not be).
  Instant OnFailure(Instant now) {
    successes_ = 0;
    ++errors_;
    // A failed probe needs no second opinion.
    if (errors_ >= options_.errors_to_pause || probing_) {
      paused_until_ = now + next_pause_;
      next_pause_ = std::min(next_pause_ * 2, options_.longest_pause);
      probing_ = true;
      return paused_until_;
    }
    return now;
  }

  void OnSuccess() {
    errors_ = 0;
    ++successes_;
    if (probing_ && successes_ >= options_.probes_to_trust) {
      probing_ = false;
      successes_ = 0;
    }
    if (!probing_ && successes_ >= options_.successes_to_forget) {
      next_pause_ = std::max(next_pause_ / 2, options_.first_pause);
      successes_ = 0;
    }
  }

  [[nodiscard]] bool Paused(Instant now) const { return probing_ && now < paused_until_; }
  // Back from a pause, not yet trusted: give it one slice at a time.
  [[nodiscard]] bool Probing() const { return probing_; }
  // Nothing to remember: successes need not be reported.
  [[nodiscard]] bool Untroubled() const {
    return !probing_ && errors_ == 0 && next_pause_ == options_.first_pause;
  }

 private:
  HealthOptions options_;
  Duration next_pause_;
  Instant paused_until_{};
  std::uint32_t errors_ = 0;
  std::uint32_t successes_ = 0;
  bool probing_ = false;
};

}  // namespace mooncake::transfer
