#include "mooncake-common/src/base/local_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "mooncake-common/src/base/address.h"

namespace mooncake {
namespace {

using ::testing::HasSubstr;

// Loopback, one that is down, and two links with three addresses on the first.
std::vector<InterfaceAddress> Interfaces() {
  return {
      {.interface = "lo", .host = "127.0.0.1", .is_loopback = true, .is_running = true},
      {.interface = "down0", .host = "10.1.0.1"},
      {.interface = "eth0", .host = "fe80::5%eth0", .is_ipv6 = true, .is_running = true},
      {.interface = "eth0", .host = "fd00::5", .is_ipv6 = true, .is_running = true},
      {.interface = "eth0", .host = "10.2.0.1", .is_running = true},
      {.interface = "eth1", .host = "10.3.0.1", .is_running = true},
  };
}

TEST(LocalAddress, PrefersWhatTheUserSaidThenRoutesThenInterfaces) {
  const auto interfaces = Interfaces();
  AdvertiseChoice choice{.user_named = "node1", .bind_address = "10.9.0.1", .routed = "10.3.0.1"};
  EXPECT_EQ(ChooseAdvertisedAddress(choice, interfaces).host, "node1");
  choice.user_named = "0.0.0.0";  // What a listener may be told, a peer may not.
  EXPECT_EQ(ChooseAdvertisedAddress(choice, interfaces).host, "10.9.0.1");
  choice.bind_address = "::";
  EXPECT_EQ(ChooseAdvertisedAddress(choice, interfaces).host, "10.3.0.1");
  choice.routed = "";
  EXPECT_EQ(ChooseAdvertisedAddress(choice, interfaces).host, "10.2.0.1");
  choice.prefer_ipv6 = true;
  EXPECT_EQ(ChooseAdvertisedAddress(choice, interfaces).host, "fd00::5");
}

TEST(LocalAddress, FallsBackToTheOtherFamilyThenLinkLocalThenLoopback) {
  const auto interfaces = Interfaces();
  const std::span<const InterfaceAddress> all(interfaces);
  EXPECT_EQ(ChooseAdvertisedAddress({}, all.first(4)).host, "fd00::5");
  EXPECT_EQ(ChooseAdvertisedAddress({}, all.first(3)).host, "fe80::5%eth0");
  EXPECT_EQ(ChooseAdvertisedAddress({}, all.first(2)).host, "127.0.0.1");
  EXPECT_EQ(ChooseAdvertisedAddress({.prefer_ipv6 = true}, {}).host, "::1");
}

TEST(LocalAddress, ListsTheLoopbackInterface) {
  const auto listed = ListInterfaceAddresses();
  ASSERT_TRUE(listed.has_value()) << listed.error().ToString();
  bool loopback = false;
  for (const InterfaceAddress& address : *listed) {
    EXPECT_TRUE(IsIpv4Literal(address.host) || IsIpv6Literal(address.host)) << address.host;
    loopback = loopback || (address.is_loopback && IsLoopbackHost(address.host));
  }
  EXPECT_TRUE(loopback);
}

TEST(LocalAddress, FindsTheSourceAddressOfARoute) {
  EXPECT_EQ(AddressThatRoutesTo("127.0.0.1"), "127.0.0.1");
  const auto by_name = AddressThatRoutesTo("localhost");
  ASSERT_FALSE(by_name.has_value());
  EXPECT_EQ(by_name.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(by_name.error().message, HasSubstr("\"localhost\""));
}

}  // namespace
}  // namespace mooncake
