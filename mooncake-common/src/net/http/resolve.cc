#include "mooncake-common/src/net/http/resolve.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

constexpr int kMaxLookups = 64;
std::atomic<int> g_lookups{0};

void SetPort(SocketAddress& address, std::uint16_t port) {
  if (address.storage.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
  }
}

Result<std::vector<SocketAddress>> Lookup(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (status != 0) {
    const std::string reason =
        status == EAI_SYSTEM ? std::system_category().message(errno) : gai_strerror(status);
    return Fail(ErrorCode::kDns, fmt::format("resolve host {}: {}; check the name and this "
                                             "machine's name servers",
                                             Quote(host), reason));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, &freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET || entry->ai_family == AF_INET6) {
      SocketAddress& address = addresses.emplace_back();
      std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
      address.length_bytes = entry->ai_addrlen;
      SetPort(address, port);
    }
  }
  if (addresses.empty()) {
    return Fail(ErrorCode::kDns, fmt::format("resolve host {}: no IP address", Quote(host)));
  }
  return addresses;
}

}  // namespace

Result<std::vector<SocketAddress>> ResolveAll(const std::string& host, std::uint16_t port,
                                              Instant deadline) {
  if (Result<std::vector<SocketAddress>> number = Lookup(host, port, AI_NUMERICHOST)) {
    return number;
  }
  if (g_lookups.fetch_add(1) >= kMaxLookups) {
    g_lookups.fetch_sub(1);
    return Fail(ErrorCode::kExhausted,
                fmt::format("resolve host {}: {} lookups wait for an answer already; is the name "
                            "server reachable?",
                            Quote(host), kMaxLookups));
  }
  std::promise<Result<std::vector<SocketAddress>>> promise;
  auto answer = promise.get_future();
  try {
    std::thread([promise = std::move(promise), host, port]() mutable {
      auto addresses = Lookup(host, port, 0);
      g_lookups.fetch_sub(1);
      promise.set_value(std::move(addresses));
    }).detach();
  } catch (const std::system_error& error) {
    g_lookups.fetch_sub(1);
    return Fail(ErrorCode::kExhausted,
                fmt::format("resolve host {}: start a thread: {}", Quote(host), error.what()));
  }
  if (answer.wait_for(deadline - SteadyClock::Get().Now()) != std::future_status::ready) {
    return Fail(ErrorCode::kTimeout,
                fmt::format("resolve host {}: no answer in time; is the name server reachable?",
                            Quote(host)));
  }
  return answer.get();
}

}  // namespace mooncake
