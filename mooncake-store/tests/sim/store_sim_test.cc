// Goal: the invariants of store_world.h hold whatever goes wrong. Method: thousands of seeds, each
// a cluster with faults of its own kind; and for each invariant a bug that must be found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "mooncake-common/src/sim/seeds.h"
#include "mooncake-store/tests/sim/store_world.h"

namespace mooncake::store {
namespace {

constexpr std::uint64_t kSeeds = 3000;
constexpr std::uint64_t kSeedsToFindABug = 300;

TEST(StoreSimulation, KeepsItsInvariantsForAnySeed) {
  WorldCounts counts;
  std::uint64_t seeds = 0;
  const auto failure = sim::RunSeeds(kSeeds, [&](sim::Simulator& simulator) {
    ++seeds;
    StoreWorld world(simulator, SimBug::kNone, counts);
    return world.Run();
  });
  ASSERT_FALSE(failure.has_value()) << failure->ToString();
  fmt::print(
      "{} seeds: puts {} (existed {}, refused {}), upserts {}, gets {} (missed {}, expired {}, "
      "failed {}), ranges {}, removes {}, evictions {} and {}, lost {}, remounts {}, client "
      "crashes {}, "
      "master restarts {}, kept {}\n",
      seeds, counts.puts, counts.puts_existed, counts.puts_refused, counts.upserts, counts.gets,
      counts.gets_missed, counts.gets_expired, counts.gets_failed, counts.ranges, counts.removes,
      counts.evictions[0], counts.evictions[1], counts.lost_objects, counts.remounts,
      counts.client_crashes, counts.master_restarts, counts.kept_checked);
  if (seeds < 100) {
    return;
  }
  // A run that never meets the hard cases proves nothing.
  for (const std::uint64_t count :
       {counts.puts, counts.puts_existed, counts.puts_refused, counts.upserts, counts.gets,
        counts.gets_missed, counts.gets_expired, counts.gets_failed, counts.ranges, counts.removes,
        counts.evictions[0], counts.evictions[1], counts.lost_objects, counts.remounts,
        counts.client_crashes, counts.master_restarts, counts.kept_checked}) {
    EXPECT_GT(count, 0U);
  }
}

TEST(StoreSimulation, RepeatsItsHistoryFromTheSameSeed) {
  const auto run = [](std::uint64_t seed) {
    WorldCounts counts;
    sim::Simulator simulator(seed);
    StoreWorld world(simulator, SimBug::kNone, counts);
    (void)world.Run();
    return simulator.HistoryHash();
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(run(seed), run(seed)) << "seed " << seed;
  }
}

// Each bug has to be found, and by the checker that is meant for it.
struct Planted {
  SimBug bug;
  const char* name;
  const char* found_as;  // A regular expression of the checker's words.
};

class StoreSimulationBugs : public testing::TestWithParam<Planted> {};

TEST_P(StoreSimulationBugs, AreFound) {
  const Planted& planted = GetParam();
  std::optional<sim::SeedFailure> failure;
  for (std::uint64_t seed = 0; seed < kSeedsToFindABug && !failure; ++seed) {
    failure = sim::RunSeed(seed, [&](sim::Simulator& simulator) {
      WorldCounts counts;
      StoreWorld world(simulator, planted.bug, counts);
      return world.Run();
    });
  }
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(failure->broken, testing::ContainsRegex(planted.found_as));
}

INSTANTIATE_TEST_SUITE_P(
    All, StoreSimulationBugs,
    testing::Values(Planted{SimBug::kSharesBytes, "SharesBytes",
                            "is given bytes|belong to version|not written"},
                    Planted{SimBug::kForgetsLeases, "ForgetsLeases", "whose lease lives"},
                    Planted{SimBug::kTrustsDeadLeases, "TrustsDeadLeases",
                            "holds write|is torn|nobody wrote"},
                    Planted{SimBug::kRemembersOldWrites, "RemembersOldWrites", "still holds write"},
                    Planted{SimBug::kLosesPuts, "LosesPuts", "was acknowledged"},
                    Planted{SimBug::kLeaksSpace, "LeaksSpace", "bytes are used"},
                    Planted{SimBug::kForgetsSegments, "ForgetsSegments", "bytes are mounted"}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace mooncake::store
