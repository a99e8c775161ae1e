// A reactor that stands still, so that what a test prepares meanwhile meets it all at once.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {

// Holds the reactor's thread from its construction to GoOn(), or to its end.
//
// Thread-safety: none; not from the reactor's thread.
class Standstill {
 public:
  explicit Standstill(Reactor& reactor) {
    reactor.Post([gate = gate_] {
      gate->standing.Notify();
      (void)gate->go_on.Wait(HangDeadline());
    });
    EXPECT_TRUE(gate_->standing.Wait(HangDeadline()));
  }
  ~Standstill() { GoOn(); }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

  void GoOn() { gate_->go_on.Notify(); }

 private:
  struct Gate {  // Shared: the reactor may leave it later than the test does.
    Event standing;
    Event go_on;
  };
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

}  // namespace mooncake
