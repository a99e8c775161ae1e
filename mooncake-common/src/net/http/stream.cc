#include "mooncake-common/src/net/http/stream.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <utility>

namespace mooncake {
namespace {

class PlainStream final : public Stream {
 public:
  explicit PlainStream(UniqueFd fd) : fd_(std::move(fd)) {}

  Result<std::size_t> ReadSome(std::span<char> to, Instant deadline) override {
    for (;;) {
      const IoOutcome outcome = SocketRead(fd_.get(), std::as_writable_bytes(to));
      if (outcome.kind == IoOutcome::Kind::kMoved) {
        return outcome.bytes;
      }
      if (outcome.kind == IoOutcome::Kind::kClosed) {
        return 0;
      }
      if (outcome.kind == IoOutcome::Kind::kFailed) {
        return std::unexpected(SocketError(PeerText(fd_.get()), outcome));
      }
      if (!WaitReady(fd_.get(), POLLIN, deadline)) {
        return Fail(ErrorCode::kTimeout, "nothing came in time");
      }
    }
  }

  Result<void> WriteAll(std::string_view bytes, Instant deadline) override {
    while (!bytes.empty()) {
      const IoOutcome outcome = SocketWrite(fd_.get(), std::as_bytes(std::span(bytes)));
      if (outcome.kind == IoOutcome::Kind::kMoved) {
        bytes.remove_prefix(outcome.bytes);
      } else if (outcome.kind != IoOutcome::Kind::kWouldBlock) {
        return std::unexpected(SocketError(PeerText(fd_.get()), outcome));
      } else if (!WaitReady(fd_.get(), POLLOUT, deadline)) {
        return Fail(ErrorCode::kTimeout, "the peer did not take all bytes in time");
      }
    }
    return {};
  }

  bool IsQuiet() override { return IsQuietSocket(fd_.get()); }

 private:
  UniqueFd fd_;
};

Result<UniqueFd> ConnectOne(const SocketAddress& address, Instant deadline) {
  MC_TRY_ASSIGN(UniqueFd fd, SocketConnect(address));
  if (!WaitReady(fd.get(), POLLOUT, deadline)) {
    return Fail(ErrorCode::kTimeout,
                fmt::format("connect to {}: no answer in time; is the address right, and does a "
                            "firewall drop packets?",
                            address.ToString()));
  }
  int error_number = 0;
  socklen_t length_bytes = sizeof error_number;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error_number, &length_bytes) != 0) {
    error_number = errno;
  }
  if (error_number != 0) {
    return std::unexpected(
        SocketError(address.ToString(),
                    {.kind = IoOutcome::Kind::kFailed, .bytes = 0, .error_number = error_number}));
  }
  return fd;
}

}  // namespace

bool WaitReady(int fd, short events, Instant deadline) {
  for (;;) {
    // Rounded up, so that the last wait does not end a fraction early and spin.
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::Get().Now());
    const auto bounded = std::clamp<std::chrono::milliseconds::rep>(
        left.count(), 0, std::numeric_limits<int>::max());
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&entry, 1, static_cast<int>(bounded));
    if (ready > 0) {
      return true;  // An error counts as ready: the next call on the socket will tell.
    }
    if ((ready == 0 || errno == EINTR) && SteadyClock::Get().Now() >= deadline) {
      return false;
    }
  }
}

bool IsQuietSocket(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 0;
}

Result<UniqueFd> ConnectSocket(std::span<const SocketAddress> addresses, Instant deadline) {
  Error last{ErrorCode::kInvalidArgument, "connect: no address is given"};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Instant now = SteadyClock::Get().Now();
    const auto left = static_cast<Duration::rep>(addresses.size() - i);
    Result<UniqueFd> fd = ConnectOne(addresses[i], now + (deadline - now) / left);
    if (fd) {
      return fd;
    }
    last = std::move(fd).error();
  }
  return std::unexpected(std::move(last));
}

Result<std::unique_ptr<Stream>> ConnectPlain(std::span<const SocketAddress> addresses,
                                             Instant deadline) {
  MC_TRY_ASSIGN(UniqueFd fd, ConnectSocket(addresses, deadline));
  return std::make_unique<PlainStream>(std::move(fd));
}

}  // namespace mooncake
