#include "mooncake-common/src/net/lane_core.h"

#include <sched.h>

#include <utility>

#include "mooncake-common/src/concurrency/parking.h"

namespace mooncake {

bool LaneCore::Enter(std::uint32_t part) {
  std::uint32_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    const bool free = (word & kHeld) == 0;
    // Clearing kAgain is sound: the drive that follows sees whatever it stood for.
    const std::uint32_t entered = part == kPolled ? word | kPolled : word + part;
    const std::uint32_t next = free ? (entered & ~kAgain) | kHeld : entered | kAgain;
    if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                    std::memory_order_relaxed)) {
      return free;
    }
  }
}

bool LaneCore::TryHold() {
  std::uint32_t word = word_.load(std::memory_order_relaxed);
  return (word & kHeld) == 0 &&
         word_.compare_exchange_strong(word, (word & ~kAgain) | kHeld, std::memory_order_acq_rel,
                                       std::memory_order_relaxed);
}

LaneDriver::Progress LaneCore::DriveHeld() {
  const std::uint32_t word = word_.load(std::memory_order_acquire);
  if ((word & kClosed) != 0) {
    return LaneDriver::Progress::kIdle;
  }
  if ((word & kClosing) != 0) {
    CloseHeld(Reason());
    return LaneDriver::Progress::kIdle;
  }
  const Result<LaneDriver::Progress> progress = port_.Drive();
  if (!progress) {
    CloseHeld(progress.error());
    return LaneDriver::Progress::kIdle;
  }
  return *progress;
}

void LaneCore::TryDrive() {
  if (Enter(0)) {
    DriveHeld();
    LeaveHolding(0);
  }
}

bool LaneCore::DriveUntil(LaneCondition done, Duration spin) {
  bool holding = Enter(kVisitor);
  for (SpinWait wait(spin);;) {
    if (!holding) {
      if (done() || closed()) {
        break;
      }
      holding = TryHold();
    }
    if (holding) {
      const bool moved = DriveHeld() == LaneDriver::Progress::kMoved;
      if (done() || closed()) {
        break;
      }
      if (moved) {
        wait.Restart();
        continue;
      }
      DisarmHeld();
    }
    if (!wait.Turn()) {
      break;
    }
  }
  if (holding) {
    LeaveHolding(kVisitor);
  } else {
    LeaveNotHolding(kVisitor);
  }
  return done();
}

bool LaneCore::Poll() {
  // Only who finds the lane free needs to say more than that it is there.
  if (!Enter(kPolled)) {
    return false;
  }
  const bool moved = DriveHeld() == LaneDriver::Progress::kMoved;
  if (!moved) {
    DisarmHeld();
  }
  LeaveHolding(0);
  return moved;
}

void LaneCore::Release() {
  if ((word_.load(std::memory_order_acquire) & kPolled) != 0) {
    LeaveNotHolding(kPolled);
  }
}

void LaneCore::Fire() {
  std::uint32_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    const bool free = (word & kHeld) == 0;
    const std::uint32_t next = free ? (word & ~(kAgain | kFired)) | kHeld : word | kAgain | kFired;
    if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                    std::memory_order_relaxed)) {
      if (!free) {
        return;
      }
      break;
    }
  }
  armed_ = Interest::kNothing;
  for (int round = 0; round < max_rounds_; ++round) {
    if (DriveHeld() == LaneDriver::Progress::kIdle) {
      break;
    }
  }
  LeaveHolding(0);
}

void LaneCore::LeaveHolding(std::uint32_t visitors) {
  for (int round = 0;; ++round) {
    std::uint32_t word = word_.load(std::memory_order_acquire);
    if ((word & (kClosing | kClosed)) == kClosing) {
      CloseHeld(Reason());
      continue;
    }
    const bool tired = round >= max_rounds_;
    if ((word & kFired) != 0 || ((word & kAgain) != 0 && !tired)) {
      word_.fetch_and(~(kAgain | kFired), std::memory_order_acq_rel);
      if ((word & kFired) != 0) {
        armed_ = Interest::kNothing;
      }
      DriveHeld();
      continue;
    }
    std::uint32_t next = (word & ~kHeld) - visitors;
    if ((word & kClosed) == 0) {
      if (!OthersStay(word, visitors)) {
        ArmHeld(/*as_if_writing=*/(word & kAgain) != 0);
        next &= ~kAgain;  // The reactor fires at once. Else the mark stays, for those who stay.
      } else if (armed_ == Interest::kNothing) {
        Arm(Interest::kHangup);  // Who stays may rest, and not notice that the peer goes.
      }
    }
    if (word_.compare_exchange_strong(word, next, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
      return;
    }
  }
}

void LaneCore::LeaveNotHolding(std::uint32_t part) {
  std::uint32_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t left = part == kPolled ? word & ~kPolled : word - part;
    // The last one sees to it that the reactor is armed.
    const bool last = (word & kHeld) == 0 && !OthersStay(left, 0);
    if (word_.compare_exchange_weak(word, last ? left | kHeld : left, std::memory_order_acq_rel,
                                    std::memory_order_relaxed)) {
      if (last) {
        LeaveHolding(0);
      }
      return;
    }
  }
}

void LaneCore::DisarmHeld() {
  if (armed_ >= Interest::kRead) {
    Arm(Interest::kHangup);  // This thread reads what arrives; let the reactor sleep.
  }
}

void LaneCore::ArmHeld(bool as_if_writing) {
  Interest wanted = armed_ == Interest::kNothing ? Interest::kHangup : armed_;
  if (as_if_writing) {
    wanted = Interest::kReadWrite;
  } else if (port_.HasPending()) {
    wanted = port_.WantsWrite() ? Interest::kReadWrite : Interest::kRead;
  }
  if (wanted != armed_) {
    Arm(wanted);
  }
}

void LaneCore::Arm(Interest interest) {
  port_.Arm(interest);
  armed_ = interest;
}

void LaneCore::CloseHeld(const Error& why) {
  port_.Close(why);
  word_.fetch_or(kClosed, std::memory_order_acq_rel);
}

Error LaneCore::Reason() {
  const MutexLock lock(reason_mutex_);
  return *reason_;
}

void LaneCore::RequestClose(Error why) {
  {
    const MutexLock lock(reason_mutex_);
    if (!reason_) {
      reason_ = std::move(why);
    }
  }
  std::uint32_t word = word_.load(std::memory_order_relaxed);
  bool holding = false;
  do {
    holding = (word & kHeld) == 0;
  } while (!word_.compare_exchange_weak(word, word | kHeld | kAgain | kClosing,
                                        std::memory_order_acq_rel, std::memory_order_relaxed));
  if (holding) {
    LeaveHolding(0);
  }
}

void LaneCore::Close(Error why) {
  RequestClose(std::move(why));
  while (!closed()) {
    sched_yield();  // The holder closes within one turn of its loop.
  }
}

}  // namespace mooncake
