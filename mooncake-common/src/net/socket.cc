#include "mooncake-common/src/net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

constexpr int kBacklog = 1024;

std::string Reason(int error_number) { return std::system_category().message(error_number); }

ErrorCode CodeOf(int error_number) {
  switch (error_number) {
    case EADDRINUSE:
      return ErrorCode::kAlreadyExists;
    case EACCES:
    case EPERM:
      return ErrorCode::kPermissionDenied;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return ErrorCode::kExhausted;
    case ECONNREFUSED:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ETIMEDOUT:
    case EADDRNOTAVAIL:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kIo;
  }
}

std::unexpected<Error> Failed(std::string_view what, const std::string& on, int error_number) {
  std::string remedy;
  if (rlimit limit{}; error_number == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    remedy = fmt::format("; this process may open {}: raise the limit (ulimit -n)", limit.rlim_cur);
  }
  return Fail(CodeOf(error_number),
              fmt::format("{} {}: {}{}", what, on, Reason(error_number), remedy));
}

void SetNoDelay(int fd) {
  const int on = 1;
  // Fails on sockets that are not TCP, which have no delay to begin with.
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Result<UniqueFd> ListenOn(const SocketAddress& address, bool both_families) {
  const int family = address.storage.ss_family;
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) {
    return Failed("create a socket for", address.ToString(), errno);
  }
  const int on = 1;
  const int only_v6 = both_families ? 0 : 1;
  if (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      (family == AF_INET6 &&
       setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6) != 0)) {
    return Failed("set socket options for", address.ToString(), errno);
  }
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length_bytes) !=
          0 ||
      listen(fd.get(), kBacklog) != 0) {
    return Failed("listen on", address.ToString(), errno);
  }
  return fd;
}

}  // namespace

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) {
    close(fd_);
  }
  fd_ = fd;
}

std::string SocketAddress::ToString() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(v4.sin_port));
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
      return fmt::format("{}:{}", text, ntohs(v6.sin6_port));
    }
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, ntohs(v6.sin6_port));
  }
  return "local socket";
}

namespace {

Result<std::vector<SocketAddress>> Lookup(const std::string& host, std::uint16_t port, int flags) {
  std::string name = host;
  if (name.size() >= 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  if (name.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "resolve an empty host name; give a name or address");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (status != 0) {
    return Fail(
        ErrorCode::kDns,
        fmt::format("resolve host {}: {}; check the name and this machine's name servers",
                    Quote(name), status == EAI_SYSTEM ? Reason(errno) : gai_strerror(status)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, &freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) {
      continue;
    }
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length_bytes = one->ai_addrlen;
    if (one->ai_family == AF_INET) {
      reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
    } else {
      reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
    }
  }
  if (addresses.empty()) {
    return Fail(ErrorCode::kDns, fmt::format("resolve host {}: it has no IP address", Quote(name)));
  }
  return addresses;
}

}  // namespace

Result<std::vector<SocketAddress>> ResolveAddresses(const std::string& host, std::uint16_t port) {
  return Lookup(host, port, 0);
}

Result<std::vector<SocketAddress>> ResolveNumber(const std::string& host, std::uint16_t port) {
  return Lookup(host, port, AI_NUMERICHOST);
}

Result<SocketAddress> ResolveAddress(const std::string& host, std::uint16_t port) {
  MC_TRY_ASSIGN(const std::vector<SocketAddress> addresses, ResolveAddresses(host, port));
  return addresses.front();
}

Result<UniqueFd> SocketListen(const std::string& host, std::uint16_t port) {
  if (host.empty() || host == "::" || host == "[::]" || host == "*") {
    SocketAddress any;
    auto& v6 = reinterpret_cast<sockaddr_in6&>(any.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_any;
    v6.sin6_port = htons(port);
    any.length_bytes = sizeof v6;
    Result<UniqueFd> both = ListenOn(any, /*both_families=*/true);
    if (both || both.error().code != ErrorCode::kIo) {
      return both;
    }
    any = {};  // A kernel without IPv6.
    auto& v4 = reinterpret_cast<sockaddr_in&>(any.storage);
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = INADDR_ANY;
    v4.sin_port = htons(port);
    any.length_bytes = sizeof v4;
    return ListenOn(any, /*both_families=*/false);
  }
  MC_TRY_ASSIGN(const SocketAddress address, ResolveAddress(host, port));
  return ListenOn(address, /*both_families=*/false);
}

Result<UniqueFd> SocketAccept(int listener, SocketAddress* peer) {
  SocketAddress from;
  from.length_bytes = sizeof from.storage;
  UniqueFd fd(accept4(listener, reinterpret_cast<sockaddr*>(&from.storage), &from.length_bytes,
                      SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd) {
    // A connection that died while it waited is nobody's error.
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO) {
      return UniqueFd();
    }
    const int reason = errno;
    return Failed("accept on port", std::to_string(LocalPort(listener).value_or(0)), reason);
  }
  SetNoDelay(fd.get());
  if (peer != nullptr) {
    *peer = from;
  }
  return fd;
}

Result<UniqueFd> SocketConnect(const SocketAddress& address) {
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) {
    return Failed("create a socket for", address.ToString(), errno);
  }
  SetNoDelay(fd.get());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage),
              address.length_bytes) != 0 &&
      errno != EINPROGRESS && errno != EINTR) {
    return Failed("connect to", address.ToString(), errno);
  }
  return fd;
}

Result<std::pair<UniqueFd, UniqueFd>> SocketPair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) {
    return Failed("create", "a socket pair", errno);
  }
  return std::pair(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

void SetKeepAlive(int fd) {
  const auto set = [fd](int level, int name, int value) {
    (void)setsockopt(fd, level, name, &value, sizeof value);  // Not every socket is TCP.
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);          // Seconds of silence before the first probe,
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);          // between probes,
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);            // and how many go unanswered.
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);  // Milliseconds that sent bytes go unacknowledged.
}

Result<std::uint16_t> LocalPort(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    return Failed("ask for the local port of", "a socket", errno);
  }
  return ntohs(storage.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in&>(storage).sin_port
                   : reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
}

std::string PeerText(int fd) {
  SocketAddress address;
  address.length_bytes = sizeof address.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length_bytes) != 0) {
    return "unknown peer";
  }
  return address.ToString();
}

namespace {

IoOutcome OutcomeOf(ssize_t moved, bool nothing_asked, bool reading) {
  if (moved > 0 || (moved == 0 && nothing_asked)) {
    return {.kind = IoOutcome::Kind::kMoved, .bytes = static_cast<std::size_t>(moved)};
  }
  if (moved == 0) {
    return {.kind = reading ? IoOutcome::Kind::kClosed : IoOutcome::Kind::kWouldBlock};
  }
  if (errno == EAGAIN) {
    return {.kind = IoOutcome::Kind::kWouldBlock};
  }
  return {.kind = IoOutcome::Kind::kFailed, .error_number = errno};
}

}  // namespace

IoOutcome SocketRead(int fd, std::span<const iovec> to) {
  ssize_t moved = 0;
  do {
    moved = readv(fd, to.data(), static_cast<int>(to.size()));
  } while (moved < 0 && errno == EINTR);
  return OutcomeOf(moved, to.empty(), /*reading=*/true);
}

IoOutcome SocketRead(int fd, std::span<std::byte> to) {
  ssize_t moved = 0;
  do {
    moved = recv(fd, to.data(), to.size(), 0);
  } while (moved < 0 && errno == EINTR);
  return OutcomeOf(moved, to.empty(), /*reading=*/true);
}

IoOutcome SocketWrite(int fd, std::span<const iovec> from) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from.data());  // sendmsg does not write to it.
  message.msg_iovlen = from.size();
  ssize_t moved = 0;
  do {
    moved = sendmsg(fd, &message, MSG_NOSIGNAL);
  } while (moved < 0 && errno == EINTR);
  return OutcomeOf(moved, from.empty(), /*reading=*/false);
}

IoOutcome SocketWrite(int fd, std::span<const std::byte> from) {
  ssize_t moved = 0;
  do {
    moved = send(fd, from.data(), from.size(), MSG_NOSIGNAL);
  } while (moved < 0 && errno == EINTR);
  return OutcomeOf(moved, from.empty(), /*reading=*/false);
}

Error SocketError(const std::string& peer, const IoOutcome& outcome) {
  if (outcome.kind == IoOutcome::Kind::kClosed) {
    return {ErrorCode::kUnavailable, peer + ": the peer closed the connection; is it restarting?"};
  }
  const std::string reason = Reason(outcome.error_number);
  if (outcome.error_number == ECONNREFUSED) {
    return {ErrorCode::kUnavailable, fmt::format("{}: {}; is the peer running?", peer, reason)};
  }
  return {ErrorCode::kUnavailable, fmt::format("{}: {}", peer, reason)};
}

}  // namespace mooncake
