#include "mooncake-common/src/sim/simulator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "mooncake-common/src/sim/seeds.h"

namespace mooncake::sim {
namespace {

using std::chrono::milliseconds;

TEST(Simulator, RunsEventsInTheOrderOfTheirTimes) {
  Simulator simulator(1);
  std::vector<int> order;
  simulator.After(milliseconds(3), [&] { order.push_back(3); });
  simulator.After(milliseconds(1), [&] {
    order.push_back(1);
    simulator.After(milliseconds(1), [&] { order.push_back(2); });
  });
  const Instant begin = simulator.Now();
  simulator.RunFor(milliseconds(10));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(simulator.Now() - begin, milliseconds(10));
  EXPECT_FALSE(simulator.Step());
}

TEST(Simulator, LeavesLaterEventsForLater) {
  Simulator simulator(1);
  bool ran = false;
  simulator.After(milliseconds(5), [&] { ran = true; });
  simulator.RunFor(milliseconds(4));
  EXPECT_FALSE(ran);
  EXPECT_EQ(simulator.pending(), 1U);
  simulator.RunFor(milliseconds(1));
  EXPECT_TRUE(ran);
}

TEST(Simulator, ShufflesEventsOfOneInstantBySeed) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Simulator simulator(seed);
    std::string order;
    for (const char name : {'a', 'b', 'c'}) {
      simulator.After(milliseconds(1), [&order, name] { order += name; });
    }
    simulator.RunFor(milliseconds(1));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6U);
}

TEST(Simulator, KeepsTheNewestLinesAndHashesAll) {
  Simulator simulator(1);
  Simulator twin(1);
  simulator.Note("first {}", 1);
  twin.Note("first {}", 2);
  for (std::size_t i = 0; i < Simulator::kHistoryLines; ++i) {
    simulator.Note("line");
    twin.Note("line");
  }
  EXPECT_EQ(simulator.History().find("first"), std::string::npos);
  EXPECT_EQ(simulator.History(), twin.History());
  EXPECT_NE(simulator.HistoryHash(), twin.HistoryHash());
}

TEST(Seeds, ReportTheFirstBrokenSeedWithItsHistoryAndHowToReplayIt) {
  const auto failure = RunSeeds(100, [](Simulator& simulator) -> std::string {
    simulator.Note("seed is {}", simulator.seed());
    return simulator.seed() == 7 ? "seven" : "";
  });
  if (const char* only = std::getenv("MC_SIM_SEED"); only != nullptr && std::string(only) != "7") {
    GTEST_SKIP() << "the environment asks for another seed";
  }
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->seed, 7U);
  const std::string text = failure->ToString();
  EXPECT_NE(text.find("seven"), std::string::npos);
  EXPECT_NE(text.find("MC_SIM_SEED=7"), std::string::npos);
  EXPECT_NE(text.find("seed is 7"), std::string::npos);
}

}  // namespace
}  // namespace mooncake::sim
