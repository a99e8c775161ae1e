#include "mooncake-transfer-engine/src/metadata/server_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace mooncake::transfer {
namespace {

const std::vector<InterfaceAddress>& Interfaces() {
  static const std::vector<InterfaceAddress> interfaces = {
      {.interface = "lo", .host = "127.0.0.1", .is_loopback = true, .is_running = true},
      {.interface = "lo", .host = "::1", .is_ipv6 = true, .is_loopback = true, .is_running = true},
      {.interface = "veth1", .host = "10.9.1.1", .is_running = true},
      {.interface = "veth2", .host = "10.9.2.1", .is_running = true},
      {.interface = "veth2", .host = "fd00::2", .is_ipv6 = true, .is_running = true}};
  return interfaces;
}

Result<std::vector<InterfaceAddress>> List() { return Interfaces(); }

Result<std::vector<InterfaceAddress>> OnlyLoopback() {
  return std::vector<InterfaceAddress>(Interfaces().begin(), Interfaces().begin() + 2);
}

// Where the user has named the host, the kernel's slow answer is not needed.
Result<std::vector<InterfaceAddress>> NobodyAsks() {
  ADD_FAILURE() << "the interfaces were listed for nothing";
  return Interfaces();
}

TEST(PeerToPeerName, IsWhatTheUserNamedWithoutItsPort) {
  struct Case {
    std::string_view given;
    std::string_view name;  // With port 15376.
    std::string_view data_host;
  };
  for (const Case& one : {
           Case{"127.0.0.1", "127.0.0.1:15376", "127.0.0.1"},
           Case{"127.0.0.1:0", "127.0.0.1:15376", "127.0.0.1"},
           Case{"localhost:7777", "localhost:15376", "localhost"},
           Case{"localhost", "localhost:15376", "localhost"},
           Case{"::1", "[::1]:15376", "::1"},
           Case{"[::1]", "[::1]:15376", "::1"},
           Case{"[::1]:0", "[::1]:15376", "::1"},
           Case{"fd00::2", "[fd00::2]:15376", "fd00::2"},
           Case{"[fe80::1%eth0]:5", "[fe80::1%eth0]:15376", "fe80::1%eth0"},
           Case{"nosuchhost.example", "nosuchhost.example:15376", "nosuchhost.example"},
       }) {
    const auto chosen = ChoosePeerToPeerHost(one.given, "", false, NobodyAsks);
    ASSERT_TRUE(chosen.has_value()) << chosen.error().message;
    EXPECT_EQ(FormatHostPort(chosen->host, 15376), one.name) << one.given;
    EXPECT_EQ(chosen->data_host, one.data_host) << one.given;
  }
}

TEST(PeerToPeerName, IsARoutableAddressWhenNothingWasNamed) {
  for (const std::string_view nothing : {"", "0.0.0.0", "0.0.0.0:8000", "::", "[::]:1"}) {
    const auto chosen = ChoosePeerToPeerHost(nothing, "", false, List);
    ASSERT_TRUE(chosen.has_value()) << chosen.error().message;
    EXPECT_EQ(chosen->host, "10.9.1.1") << nothing;
    EXPECT_EQ(chosen->data_host, "") << nothing;  // Readers use the host they dialled.
    EXPECT_EQ(ChoosePeerToPeerHost(nothing, "10.9.2.1", false, List)->host, "10.9.2.1");
    EXPECT_EQ(ChoosePeerToPeerHost(nothing, "", true, List)->host, "fd00::2");
    EXPECT_EQ(ChoosePeerToPeerHost(nothing, "", false, OnlyLoopback)->host, "127.0.0.1");
  }
}

TEST(PeerToPeerName, ErrorsQuoteWhatIsNoHost) {
  for (const std::string_view bad : {"[::1", "::1]:x", "1:2:3", "host:99999", "ho st", ":80"}) {
    const auto chosen = ChoosePeerToPeerHost(bad, "", false, List);
    ASSERT_FALSE(chosen.has_value()) << bad;
    EXPECT_EQ(chosen.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(chosen.error().message.find(bad), std::string::npos) << chosen.error().message;
  }
}

TEST(PublishedHost, IsWhatTheUserNamedWhenThisHostHasIt) {
  EXPECT_EQ(ChoosePublishedHost("10.9.2.1", "", "10.9.1.1", false, Interfaces()).host, "10.9.2.1");
  EXPECT_EQ(ChoosePublishedHost("10.9.2.1:12345", "", "", false, Interfaces()).host, "10.9.2.1");
  EXPECT_EQ(ChoosePublishedHost("[fd00::2]:1", "", "", false, Interfaces()).host, "fd00::2");
}

TEST(PublishedHost, PassesOverLabelsThatPeersCannotReach) {
  for (const std::string_view label :
       {"127.0.0.1:12345", "localhost", "10.8.8.8", "node-7", "a/b", "", "1:2:3"}) {
    EXPECT_EQ(ChoosePublishedHost(label, "", "10.9.2.1", false, Interfaces()).host, "10.9.2.1")
        << label;
    EXPECT_EQ(ChoosePublishedHost(label, "", "127.0.0.1", false, Interfaces()).host, "10.9.1.1")
        << label;
    EXPECT_EQ(ChoosePublishedHost(label, "", "", false, Interfaces()).host, "10.9.1.1") << label;
    EXPECT_EQ(ChoosePublishedHost(label, "10.9.3.1", "10.9.2.1", false, Interfaces()).host,
              "10.9.3.1")
        << label;
  }
}

TEST(PublishedHost, IsLoopbackWhereThereIsNothingElse) {
  const HostChoice chosen = ChoosePublishedHost("node-7", "", "127.0.0.1", false, *OnlyLoopback());
  EXPECT_EQ(chosen.host, "127.0.0.1");
  EXPECT_EQ(chosen.data_host, "127.0.0.1");
}

TEST(PeerName, IsDialledAtItsPortOrTheDefault) {
  EXPECT_EQ(ParsePeerName("10.0.0.1:15000", 12001), (HostPort{.host = "10.0.0.1", .port = 15000}));
  EXPECT_EQ(ParsePeerName("/[::1]:15000", 12001), (HostPort{.host = "::1", .port = 15000}));
  EXPECT_EQ(ParsePeerName("node", 12001), (HostPort{.host = "node", .port = 12001}));
  const auto bad = ParsePeerName("[::1", 12001);
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find("[::1"), std::string::npos);
}

}  // namespace
}  // namespace mooncake::transfer
