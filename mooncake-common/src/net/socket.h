// Descriptors and non-blocking stream sockets: what the reactor, lanes, RPC and transports stand
// on.
//
// Thread-safety: free functions, callable from any thread; a UniqueFd is for one thread at a time.
// Ownership:     UniqueFd closes what it holds; functions that take an int borrow it for the call.
// Errors:        SocketListen, SocketConnect and ResolveAddress describe address and reason in
// words.
//                "Would block" is an ordinary outcome, never an Error.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/result.h"

namespace mooncake {

// Owns a file descriptor. -1 means none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset(std::exchange(other.fd_, -1));
    }
    return *this;
  }
  ~UniqueFd() { Reset(); }

  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// A resolved address. Kept, so that connecting again never resolves.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length_bytes = 0;

  // "10.0.0.1:15000", "[fe80::1]:15000"; an IPv4 address mapped into IPv6 reads as IPv4.
  [[nodiscard]] std::string ToString() const;
};

// Resolves `host` (a name or a number, IPv6 with or without brackets) and takes the first answer.
// May block on DNS: for set-up only, never on a reactor's or a submitting thread.
//
// Errors: kDns, kInvalidArgument for an empty host.
[[nodiscard]] Result<SocketAddress> ResolveAddress(const std::string& host, std::uint16_t port);

// All answers, in the order in which to try them, at least one. A name such as "localhost" may have
// one in each family, of which the peer listens on one only.
//
// Errors: as ResolveAddress.
[[nodiscard]] Result<std::vector<SocketAddress>> ResolveAddresses(const std::string& host,
                                                                  std::uint16_t port);
// The same for a number alone, without asking anybody. Errors: also kDns for a name.
[[nodiscard]] Result<std::vector<SocketAddress>> ResolveNumber(const std::string& host,
                                                               std::uint16_t port);

// Binds and listens, non-blocking, and keeps the port: it is never shared (no SO_REUSEPORT), and a
// port in TIME_WAIT can be taken again (SO_REUSEADDR). An empty host, "::" and "*" mean all
// addresses of both families, or of IPv4 alone where the kernel has no IPv6. Port 0 lets the kernel
// choose; see LocalPort.
//
// Errors: kDns, kAlreadyExists for a port in use, kPermissionDenied, kIo.
[[nodiscard]] Result<UniqueFd> SocketListen(const std::string& host, std::uint16_t port);

// Takes one waiting connection: non-blocking, close-on-exec, no Nagle delay; `peer` may be null.
// An empty UniqueFd means that none waits. Errors: kExhausted (no descriptors left), kIo.
[[nodiscard]] Result<UniqueFd> SocketAccept(int listener, SocketAddress* peer);

// Begins to connect: non-blocking, close-on-exec, no Nagle delay. Success means "under way"; until
// it is established SocketRead and SocketWrite report "would block", and a refusal comes from them.
//
// Errors: kUnavailable (refused or unreachable at once), kIo.
[[nodiscard]] Result<UniqueFd> SocketConnect(const SocketAddress& address);

// A connected pair of non-blocking stream sockets within the machine, for tests and benchmarks.
[[nodiscard]] Result<std::pair<UniqueFd, UniqueFd>> SocketPair();

// Has the kernel notice a peer that vanished without a word (power, cable), within about half a
// minute, at no cost to any thread: the connection then fails. A request of set-up.
void SetKeepAlive(int fd);

[[nodiscard]] Result<std::uint16_t> LocalPort(int fd);

// The other end in words, "unknown peer" when it has gone.
[[nodiscard]] std::string PeerText(int fd);

// What one attempt to move bytes came to.
struct IoOutcome {
  enum class Kind : std::uint8_t {
    kMoved,       // `bytes` (> 0) were moved.
    kWouldBlock,  // Nothing now; wait for readiness.
    kClosed,      // Reading only: the peer has finished sending.
    kFailed,      // `error_number` says why; the connection is lost.
  };
  Kind kind = Kind::kWouldBlock;
  std::size_t bytes = 0;
  int error_number = 0;
};

// One readv or sendmsg (without SIGPIPE); signals are retried. Empty spans are kMoved with 0 bytes.
[[nodiscard]] IoOutcome SocketRead(int fd, std::span<const iovec> to);
[[nodiscard]] IoOutcome SocketRead(int fd, std::span<std::byte> to);
[[nodiscard]] IoOutcome SocketWrite(int fd, std::span<const iovec> from);
[[nodiscard]] IoOutcome SocketWrite(int fd, std::span<const std::byte> from);

// kUnavailable with words for an outcome of kClosed or kFailed: "10.0.0.1:15000: connection
// refused; is the peer running?".
[[nodiscard]] Error SocketError(const std::string& peer, const IoOutcome& outcome);

}  // namespace mooncake
