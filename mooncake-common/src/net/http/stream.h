// A connection that its caller waits on, with a deadline for each call; plain TCP here, TLS in
// tls.h.
//
// Thread-safety: one thread at a time.
// Ownership:     a Stream owns its socket.
// Errors:        kTimeout at the deadline; kUnavailable when the connection is lost. After an error
//                the stream is of no more use.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake {

class Stream {
 public:
  virtual ~Stream() = default;

  // Waits for bytes; returns how many came. 0 means that the peer has finished.
  [[nodiscard]] virtual Result<std::size_t> ReadSome(std::span<char> to, Instant deadline) = 0;
  [[nodiscard]] virtual Result<void> WriteAll(std::string_view bytes, Instant deadline) = 0;

  // False when the peer has closed, or sent what nobody asked for, since the last answer.
  [[nodiscard]] virtual bool IsQuiet() = 0;
};

// Connects to the first address that answers. Each gets an equal share of the time left.
//
// Errors: kUnavailable (refused, unreachable), kTimeout: the last address's, in words.
[[nodiscard]] Result<std::unique_ptr<Stream>> ConnectPlain(std::span<const SocketAddress> addresses,
                                                           Instant deadline);
[[nodiscard]] Result<UniqueFd> ConnectSocket(std::span<const SocketAddress> addresses,
                                             Instant deadline);

// Waits until `fd` is ready for `events` (of poll). True if it is, false at the deadline.
[[nodiscard]] bool WaitReady(int fd, short events, Instant deadline);

// True if nothing waits to be read from `fd`, not even an end or an error.
[[nodiscard]] bool IsQuietSocket(int fd);

}  // namespace mooncake
