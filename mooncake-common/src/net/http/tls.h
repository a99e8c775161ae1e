// TLS for clients, by OpenSSL, which stays inside tls.cc.
//
// Thread-safety: a TlsContext may be shared by threads; its streams are for one thread at a time.
// Security:      TLS 1.2 or later; the peer's certificate and its name are verified unless told
//                otherwise.
#pragma once

#include <memory>
#include <string>

#include "mooncake-common/src/net/http/stream.h"

namespace mooncake {

struct TlsOptions {
  bool verify = true;
  std::string ca_file;  // PEM, trusted instead of the system's certificates. Empty = the system's.
};

class TlsContext {
 public:
  // Errors: kInvalidArgument if `ca_file` cannot be read.
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> Create(const TlsOptions& options);

  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Shakes hands over a connected, non-blocking socket. `host` is the name or address that the
  // certificate must be for.
  //
  // Errors: kPermissionDenied when the certificate is not trusted or for another name, and how to
  // trust it; kUnavailable when the peer does not speak TLS; kTimeout.
  [[nodiscard]] Result<std::unique_ptr<Stream>> Connect(UniqueFd fd, const std::string& host,
                                                        Instant deadline);

 private:
  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mooncake
