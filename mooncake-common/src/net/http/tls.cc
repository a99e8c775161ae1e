#include "mooncake-common/src/net/http/tls.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "mooncake-common/src/base/address.h"
#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

// OpenSSL's own socket BIO raises SIGPIPE, which ends a program that does not ignore it; this one
// goes through SocketWrite(), which does not.
class SocketBio {
 public:
  static BIO* New(int fd) {
    BIO* bio = BIO_new(Method());
    if (bio != nullptr) {
      // The BIO keeps a pointer for its owner; ours is a number.
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
      BIO_set_init(bio, 1);
    }
    return bio;
  }

 private:
  static int Fd(BIO* bio) {
    return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  }

  static int Read(BIO* bio, char* to, int length) {
    BIO_clear_retry_flags(bio);
    const IoOutcome outcome = SocketRead(
        Fd(bio), std::as_writable_bytes(std::span(to, static_cast<std::size_t>(length))));
    if (outcome.kind == IoOutcome::Kind::kWouldBlock) {
      BIO_set_retry_read(bio);
    }
    if (outcome.kind == IoOutcome::Kind::kClosed) {
      BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
      return 0;
    }
    return outcome.kind == IoOutcome::Kind::kMoved ? static_cast<int>(outcome.bytes) : -1;
  }

  static int Write(BIO* bio, const char* from, int length) {
    BIO_clear_retry_flags(bio);
    const IoOutcome outcome =
        SocketWrite(Fd(bio), std::as_bytes(std::span(from, static_cast<std::size_t>(length))));
    if (outcome.kind == IoOutcome::Kind::kWouldBlock) {
      BIO_set_retry_write(bio);
    }
    return outcome.kind == IoOutcome::Kind::kMoved ? static_cast<int>(outcome.bytes) : -1;
  }

  static long Control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) {
      return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    }
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static BIO_METHOD* Method() {
    // Lives as long as the process, as the streams of a static client may.
    static BIO_METHOD* const method = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "mooncake");
      BIO_meth_set_read(made, &Read);
      BIO_meth_set_write(made, &Write);
      BIO_meth_set_ctrl(made, &Control);
      return made;
    }();
    return method;
  }
};

std::string LastTlsError() {
  const unsigned long code = ERR_peek_last_error();
  if (code == 0) {
    return "the connection was lost";
  }
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : fmt::format("OpenSSL error {:#x}", code);
}

using SslPointer = std::unique_ptr<SSL, decltype(&SSL_free)>;

class TlsStream final : public Stream {
 public:
  TlsStream(UniqueFd fd, SslPointer ssl) : fd_(std::move(fd)), ssl_(std::move(ssl)) {}

  ~TlsStream() override {
    if (healthy_) {
      ERR_clear_error();
      (void)SSL_shutdown(ssl_.get());  // Says goodbye; the answer is not waited for.
    }
  }

  Result<void> Handshake(const std::string& host, Instant deadline) {
    Result<int> done = Run([this] { return SSL_connect(ssl_.get()); }, deadline);
    if (done && *done == 1) {
      return {};
    }
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      return Fail(ErrorCode::kPermissionDenied,
                  fmt::format("TLS with {}: the certificate is for another name; use a name that "
                              "it is for",
                              Quote(host)));
    }
    if (verdict != X509_V_OK) {
      return Fail(ErrorCode::kPermissionDenied,
                  fmt::format("TLS with {}: the certificate is not trusted: {}; add its authority "
                              "to the system's certificates or name it as CA file",
                              Quote(host), X509_verify_cert_error_string(verdict)));
    }
    if (!done) {
      Error error = std::move(done).error();
      error.message = fmt::format("TLS handshake with {}: {}; does this port speak TLS?",
                                  Quote(host), error.message);
      return std::unexpected(std::move(error));
    }
    return Fail(ErrorCode::kUnavailable,
                fmt::format("TLS handshake with {}: the peer closed the connection; does this port "
                            "speak TLS?",
                            Quote(host)));
  }

  Result<std::size_t> ReadSome(std::span<char> to, Instant deadline) override {
    MC_TRY_ASSIGN(
        const int bytes,
        Run([&] { return SSL_read(ssl_.get(), to.data(), Bounded(to.size())); }, deadline));
    return static_cast<std::size_t>(bytes);
  }

  Result<void> WriteAll(std::string_view bytes, Instant deadline) override {
    while (!bytes.empty()) {
      MC_TRY_ASSIGN(const int written,
                    Run([&] { return SSL_write(ssl_.get(), bytes.data(), Bounded(bytes.size())); },
                        deadline));
      if (written == 0) {
        return Fail(ErrorCode::kUnavailable, "the peer closed the connection");
      }
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  bool IsQuiet() override {
    // Session tickets of TLS 1.3 come after the handshake: let OpenSSL take what is no data.
    ERR_clear_error();
    char byte = 0;
    const int peeked = SSL_peek(ssl_.get(), &byte, 1);
    return peeked <= 0 && SSL_get_error(ssl_.get(), peeked) == SSL_ERROR_WANT_READ;
  }

 private:
  static int Bounded(std::size_t bytes) {
    return static_cast<int>(std::min<std::size_t>(bytes, std::numeric_limits<int>::max()));
  }

  // Calls `step` until it has moved something; returns its value, 0 after an orderly end.
  template <typename Step>
  Result<int> Run(Step step, Instant deadline) {
    for (;;) {
      ERR_clear_error();
      const int value = step();
      if (value > 0) {
        return value;
      }
      short events = 0;
      switch (SSL_get_error(ssl_.get(), value)) {
        case SSL_ERROR_WANT_READ:
          events = POLLIN;
          break;
        case SSL_ERROR_WANT_WRITE:
          events = POLLOUT;
          break;
        case SSL_ERROR_ZERO_RETURN:
          return 0;
        default:
          healthy_ = false;
          return Fail(ErrorCode::kUnavailable, LastTlsError());
      }
      if (!WaitReady(fd_.get(), events, deadline)) {
        healthy_ = false;
        return Fail(ErrorCode::kTimeout, "the peer did not answer in time");
      }
    }
  }

  UniqueFd fd_;
  SslPointer ssl_;
  bool healthy_ = true;
};

}  // namespace

struct TlsContext::Impl {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context;
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::Create(const TlsOptions& options) {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                            &SSL_CTX_free);
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return Fail(ErrorCode::kInternal, fmt::format("set up TLS: {}", LastTlsError()));
  }
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
  SSL_CTX_set_verify(context.get(), options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!options.ca_file.empty()) {
    if (SSL_CTX_load_verify_locations(context.get(), options.ca_file.c_str(), nullptr) != 1) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("load CA file {}: {}; it must be a readable file of PEM certificates",
                              Quote(options.ca_file), LastTlsError()));
    }
  } else if (SSL_CTX_set_default_verify_paths(context.get()) != 1) {
    return Fail(ErrorCode::kInternal,
                fmt::format("load the system's certificates: {}", LastTlsError()));
  }
  return std::shared_ptr<TlsContext>(
      new TlsContext(std::make_unique<Impl>(Impl{.context = std::move(context)})));
}

Result<std::unique_ptr<Stream>> TlsContext::Connect(UniqueFd fd, const std::string& host,
                                                    Instant deadline) {
  ERR_clear_error();
  SslPointer ssl(SSL_new(impl_->context.get()), &SSL_free);
  BIO* bio = ssl ? SocketBio::New(fd.get()) : nullptr;
  if (bio == nullptr) {
    return Fail(ErrorCode::kInternal, fmt::format("set up TLS: {}", LastTlsError()));
  }
  SSL_set_bio(ssl.get(), bio, bio);
  const std::string address = host.substr(0, host.find('%'));
  const bool is_address = IsIpv4Literal(address) || IsIpv6Literal(address);
  const bool named =
      is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), address.c_str()) == 1
                 : SSL_set1_host(ssl.get(), host.c_str()) == 1 &&
                       SSL_set_tlsext_host_name(ssl.get(), host.c_str()) == 1;
  if (!named) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("TLS with {}: no certificate can be for such a name", Quote(host)));
  }
  auto stream = std::make_unique<TlsStream>(std::move(fd), std::move(ssl));
  MC_TRY(stream->Handshake(host, deadline));
  return stream;
}

}  // namespace mooncake
