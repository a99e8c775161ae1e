// Runs one scenario over many seeds, and one seed again from its number.
//
//   MC_SIM_SEED=1234   only that seed, its history to stderr as it happens
//   MC_SIM_SEEDS=50000 that many seeds instead of the test's own number
//   MC_SIM_FIRST=70000 seeds from there on instead of from 0
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "mooncake-common/src/sim/simulator.h"

namespace mooncake::sim {

// A scenario builds its world on the simulator, runs it, and returns what was broken; empty =
// nothing.
using Scenario = std::function<std::string(Simulator&)>;

struct SeedFailure {
  std::uint64_t seed = 0;
  std::string broken;
  std::string history;  // The newest lines before the end.

  // All that a reader needs, the command to replay it included.
  [[nodiscard]] std::string ToString() const;
};

// The first of so many seeds that breaks, if any. Builds with a sanitizer run a tenth of the
// seeds, and at least one.
[[nodiscard]] std::optional<SeedFailure> RunSeeds(std::uint64_t seeds, const Scenario& scenario);

// One seed, without the environment's say.
[[nodiscard]] std::optional<SeedFailure> RunSeed(std::uint64_t seed, const Scenario& scenario,
                                                 bool echo = false);

}  // namespace mooncake::sim
