#include "mooncake-common/src/net/port_range.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "mooncake-common/src/test_support/loopback.h"

namespace mooncake {
namespace {

// Some ports in a row of a host where nobody else listens, and none that the kernel gives away.
constexpr PortRange kTwentyPorts{.min = 20000, .max = 20019};

TEST(PortRange, GivesEveryPortOnceAndThenNamesRangeAndRemedy) {
  const PortRange range = kTwentyPorts;
  const std::string host = OwnLoopbackHost();
  Rng rng(1);
  std::vector<BoundListener> held;
  std::set<std::uint16_t> ports;
  for (int i = 0; i < 20; ++i) {
    auto listener = ListenInRange(host, range, rng);
    ASSERT_TRUE(listener.has_value()) << listener.error().message;
    EXPECT_GE(listener->port, range.min);
    EXPECT_LE(listener->port, range.max);
    EXPECT_TRUE(ports.insert(listener->port).second) << "twice: " << listener->port;
    held.push_back(std::move(*listener));
  }
  const auto none = ListenInRange(host, range, rng);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kExhausted);
  EXPECT_NE(
      none.error().message.find(std::to_string(range.min) + " to " + std::to_string(range.max)),
      std::string::npos)
      << none.error().message;
  EXPECT_NE(none.error().message.find("MC_MAX_RPC_PORT"), std::string::npos);
}

TEST(PortRange, TakesPortsInRandomOrder) {
  const std::string host = OwnLoopbackHost();
  std::set<std::uint16_t> firsts;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    firsts.insert(ListenInRange(host, kTwentyPorts, rng).value().port);
  }
  EXPECT_GT(firsts.size(), 5U);
}

TEST(PortRange, LetsTheKernelChoose) {
  Rng rng(1);
  const auto listener = ListenInRange("", {.min = 0, .max = 0}, rng);
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  EXPECT_NE(listener->port, 0);
}

TEST(PortRange, RefusesAnEmptyRange) {
  Rng rng(1);
  EXPECT_EQ(ListenInRange("", {.min = 17000, .max = 15000}, rng).error().code,
            ErrorCode::kInvalidArgument);
}

TEST(PortRange, PassesOnOtherErrors) {
  Rng rng(1);
  EXPECT_EQ(ListenInRange("no such host", {.min = 0, .max = 0}, rng).error().code, ErrorCode::kDns);
}

}  // namespace
}  // namespace mooncake
