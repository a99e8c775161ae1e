#include "mooncake-common/src/net/port_range.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace mooncake {
namespace {

// Some `count` free ports in a row, found by asking the kernel.
PortRange FreeRange(std::uint16_t count) {
  Rng rng = Rng::FromOs();
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto min = static_cast<std::uint16_t>(rng.Between(20000, 30000));
    std::vector<UniqueFd> held;
    while (held.size() < count) {
      auto fd = SocketListen("", static_cast<std::uint16_t>(min + held.size()));
      if (!fd) {
        break;
      }
      held.push_back(std::move(*fd));
    }
    if (held.size() == count) {
      return {.min = min, .max = static_cast<std::uint16_t>(min + count - 1)};
    }
  }
  ADD_FAILURE() << "no free ports";
  return {};
}

TEST(PortRange, GivesEveryPortOnceAndThenNamesRangeAndRemedy) {
  const PortRange range = FreeRange(20);
  Rng rng(1);
  std::vector<BoundListener> held;
  std::set<std::uint16_t> ports;
  for (int i = 0; i < 20; ++i) {
    auto listener = ListenInRange("", range, rng);
    ASSERT_TRUE(listener.has_value()) << listener.error().message;
    EXPECT_GE(listener->port, range.min);
    EXPECT_LE(listener->port, range.max);
    EXPECT_TRUE(ports.insert(listener->port).second) << "twice: " << listener->port;
    held.push_back(std::move(*listener));
  }
  const auto none = ListenInRange("", range, rng);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kExhausted);
  EXPECT_NE(
      none.error().message.find(std::to_string(range.min) + " to " + std::to_string(range.max)),
      std::string::npos)
      << none.error().message;
  EXPECT_NE(none.error().message.find("MC_MAX_RPC_PORT"), std::string::npos);
}

TEST(PortRange, TakesPortsInRandomOrder) {
  const PortRange range = FreeRange(20);
  std::set<std::uint16_t> firsts;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    firsts.insert(ListenInRange("", range, rng).value().port);
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
