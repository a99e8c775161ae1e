#include "mooncake-common/src/base/local_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <initializer_list>
#include <memory>
#include <system_error>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

std::string Reason(int error) { return std::generic_category().message(error); }

// The literal of a socket address, with its scope; empty if the kernel gave something odd.
std::string ToLiteral(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  const int rc = getnameinfo(address, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  return rc == 0 ? std::string(host.data()) : std::string();
}

bool IsLinkLocal(std::string_view host) { return host.find('%') != std::string_view::npos; }

}  // namespace

Result<std::vector<InterfaceAddress>> ListInterfaceAddresses() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) {
    return Fail(ErrorCode::kIo, fmt::format("list network interfaces: {}", Reason(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, &freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) {
      continue;
    }
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) {
      continue;
    }
    std::string host =
        ToLiteral(entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (host.empty()) {
      continue;
    }
    constexpr unsigned int kRunning = IFF_UP | IFF_RUNNING;
    found.push_back({.interface = entry->ifa_name,
                     .host = std::move(host),
                     .is_ipv6 = family == AF_INET6,
                     .is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0,
                     .is_running = (entry->ifa_flags & kRunning) == kRunning});
  }
  return found;
}

Result<std::string> AddressThatRoutesTo(std::string_view peer) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* raw = nullptr;
  if (!(IsIpv4Literal(peer) || IsIpv6Literal(peer)) ||
      getaddrinfo(std::string(peer).c_str(), "9", &hints, &raw) != 0) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("find the route to {}: not an IP address; resolve it first", Quote(peer)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> target(raw, &freeaddrinfo);
  const auto no_route = [&] {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("find the route to {}: {}", peer, Reason(errno)));
  };
  const int socket_fd = socket(target->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) {
    return no_route();
  }
  // Connecting a datagram socket sends nothing; it only makes the kernel choose a route.
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  auto* const local_address = reinterpret_cast<sockaddr*>(&local);
  const bool routed = connect(socket_fd, target->ai_addr, target->ai_addrlen) == 0 &&
                      getsockname(socket_fd, local_address, &size) == 0;
  Result<std::string> answer = no_route();
  if (routed) {
    answer = ToLiteral(local_address, size);
  }
  close(socket_fd);
  return answer;
}

AdvertisedAddress ChooseAdvertisedAddress(const AdvertiseChoice& choice,
                                          std::span<const InterfaceAddress> interfaces) {
  const auto says_something = [](std::string_view host) {
    return !host.empty() && !IsWildcardHost(host);
  };
  if (says_something(choice.user_named)) {
    return {.host = choice.user_named, .reason = "named by the user"};
  }
  if (says_something(choice.bind_address)) {
    return {.host = choice.bind_address, .reason = "MC_TCP_BIND_ADDRESS"};
  }
  if (says_something(choice.routed)) {
    return {.host = choice.routed, .reason = "routes to the peer"};
  }
  // Lower is better.
  const auto rank = [&](const InterfaceAddress& address) {
    return IsLinkLocal(address.host) ? 2 : (address.is_ipv6 != choice.prefer_ipv6 ? 1 : 0);
  };
  for (const int wanted : {0, 1, 2}) {
    const auto found = std::ranges::find_if(interfaces, [&](const InterfaceAddress& address) {
      return address.is_running && !address.is_loopback && rank(address) == wanted;
    });
    if (found != interfaces.end()) {
      return {.host = found->host, .reason = "first running interface"};
    }
  }
  return {.host = choice.prefer_ipv6 ? "::1" : "127.0.0.1", .reason = "only loopback is up"};
}

}  // namespace mooncake
