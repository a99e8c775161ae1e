#include "mooncake-common/src/net/http/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "mooncake-common/src/net/http/client.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

using KeyPointer = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using CertificatePointer = std::unique_ptr<X509, decltype(&X509_free)>;

// A key and a certificate that it has signed itself, valid for `names` ("DNS:a,IP:127.0.0.1").
struct SelfSigned {
  explicit SelfSigned(const char* names) {
    constexpr long kSecondsOfADay = 86400;
    X509_set_version(certificate.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kSecondsOfADay);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kSecondsOfADay);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(certificate.get(), name);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
    X509_add_ext(certificate.get(), extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(certificate.get(), key.get(), EVP_sha256());
  }

  KeyPointer key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  CertificatePointer certificate{X509_new(), &X509_free};
};

// The certificate in a file of its own, removed at the end.
class PemFile {
 public:
  explicit PemFile(const SelfSigned& self) {
    path_ = testing::TempDir() + "mooncake_tls_XXXXXX";
    const int fd = mkstemp(path_.data());
    std::FILE* file = fdopen(fd, "w");
    PEM_write_X509(file, self.certificate.get());
    (void)std::fclose(file);
  }
  ~PemFile() { (void)unlink(path_.c_str()); }
  PemFile(const PemFile&) = delete;
  PemFile& operator=(const PemFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Answers `requests` requests on each of `connections` connections with "ok" over TLS.
class TlsServer {
 public:
  TlsServer(const SelfSigned& self, int connections, int requests)
      : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
    // OpenSSL writes to clients that have gone, without asking for no signal.
    (void)std::signal(SIGPIPE, SIG_IGN);
    SSL_CTX_use_certificate(context_.get(), self.certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), self.key.get());
    listener_ = *SocketListen("127.0.0.1", 0);
    port_ = *LocalPort(listener_.get());
    thread_ = std::thread([this, connections, requests] {
      for (int i = 0; i < connections && WaitReady(listener_.get(), POLLIN, HangDeadline()); ++i) {
        Serve(*SocketAccept(listener_.get(), nullptr), requests);
      }
    });
  }
  ~TlsServer() { thread_.join(); }

  std::string Url(const std::string& host) const {
    return "https://" + host + ":" + std::to_string(port_) + "/";
  }

 private:
  void Serve(UniqueFd fd, int requests) {
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context_.get()), &SSL_free);
    SSL_set_fd(ssl.get(), fd.get());
    const auto run = [&](auto step) {
      int value = step();
      while (value <= 0 && (SSL_get_error(ssl.get(), value) == SSL_ERROR_WANT_READ ||
                            SSL_get_error(ssl.get(), value) == SSL_ERROR_WANT_WRITE)) {
        if (!WaitReady(fd.get(), POLLIN, HangDeadline())) {
          return 0;
        }
        value = step();
      }
      return value;
    };
    if (run([&] { return SSL_accept(ssl.get()); }) != 1) {
      return;
    }
    const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for (int i = 0; i < requests; ++i) {
      std::string request;
      std::array<char, 4096> buffer{};
      while (!request.ends_with("\r\n\r\n")) {
        const int bytes = run(
            [&] { return SSL_read(ssl.get(), buffer.data(), static_cast<int>(buffer.size())); });
        if (bytes <= 0) {
          return;
        }
        request.append(buffer.data(), static_cast<std::size_t>(bytes));
      }
      run([&] { return SSL_write(ssl.get(), answer.data(), static_cast<int>(answer.size())); });
    }
    SSL_shutdown(ssl.get());
  }

  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

HttpClientOptions Trusting(const std::string& ca_file) {
  return {.total_timeout = kHangLimit, .connect_timeout = kHangLimit, .tls = {.ca_file = ca_file}};
}

TEST(Tls, ReachesAServerWhoseCertificateIsTrusted) {
  const SelfSigned self("DNS:localhost,IP:127.0.0.1");
  const PemFile pem(self);
  TlsServer server(self, 2, 3);
  HttpClient client(Trusting(pem.path()));
  for (const std::string host : {"localhost", "127.0.0.1"}) {
    for (int i = 0; i < 3; ++i) {  // Session tickets come in between and must not end the reuse.
      const auto response = client.Get(server.Url(host));
      ASSERT_TRUE(response) << response.error().ToString();
      EXPECT_EQ(response->body, "ok");
    }
  }
  EXPECT_EQ(client.connections_opened(), 2);
}

TEST(Tls, ComesBackAfterTheServerHasClosedAKeptConnection) {
  const SelfSigned self("IP:127.0.0.1");
  const PemFile pem(self);
  TlsServer server(self, 2, 1);
  HttpClient client(Trusting(pem.path()));
  for (int i = 0; i < 2; ++i) {
    const auto response = client.Get(server.Url("127.0.0.1"));
    ASSERT_TRUE(response) << response.error().ToString();
  }
  EXPECT_EQ(client.connections_opened(), 2);
}

TEST(Tls, RefusesACertificateThatNobodyVouchesForAndSaysHowToTrustIt) {
  const SelfSigned self("IP:127.0.0.1");
  TlsServer server(self, 1, 1);
  HttpClient client(Trusting(""));
  const auto response = client.Get(server.Url("127.0.0.1"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kPermissionDenied);
  EXPECT_THAT(response.error().message, AllOf(HasSubstr("not trusted"), HasSubstr("CA file")));
}

TEST(Tls, RefusesACertificateForAnotherName) {
  const SelfSigned self("DNS:other.example,IP:192.0.2.1");
  const PemFile pem(self);
  TlsServer server(self, 2, 1);
  HttpClient client(Trusting(pem.path()));
  for (const std::string host : {"localhost", "127.0.0.1"}) {
    const auto response = client.Get(server.Url(host));
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, ErrorCode::kPermissionDenied);
    EXPECT_THAT(response.error().message, HasSubstr("another name"));
  }
}

TEST(Tls, TakesAnyCertificateOnlyWhenTold) {
  const SelfSigned self("DNS:other.example");
  TlsServer server(self, 1, 1);
  HttpClientOptions options = Trusting("");
  options.tls.verify = false;
  HttpClient client(options);
  const auto response = client.Get(server.Url("127.0.0.1"));
  ASSERT_TRUE(response) << response.error().ToString();
}

TEST(Tls, SaysThatTheServerDoesNotSpeakTls) {
  const UniqueFd listener = *SocketListen("127.0.0.1", 0);
  std::thread plain([&] {
    (void)WaitReady(listener.get(), POLLIN, HangDeadline());
    const UniqueFd fd = *SocketAccept(listener.get(), nullptr);
    (void)WaitReady(fd.get(), POLLIN, HangDeadline());
    const std::string answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
    (void)SocketWrite(fd.get(), std::as_bytes(std::span(answer)));
    shutdown(fd.get(), SHUT_WR);
    std::array<std::byte, 4096> buffer{};
    (void)SocketRead(fd.get(), buffer);
  });
  HttpClient client(Trusting(""));
  const auto response =
      client.Get("https://127.0.0.1:" + std::to_string(*LocalPort(listener.get())) + "/");
  plain.join();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("does this port speak TLS?"));
}

TEST(Tls, GivesUpOnAServerThatDoesNotShakeHands) {
  const UniqueFd silent = *SocketListen("127.0.0.1", 0);
  HttpClient client({.total_timeout = 60ms, .connect_timeout = 30ms});
  const auto response =
      client.Get("https://127.0.0.1:" + std::to_string(*LocalPort(silent.get())) + "/");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kTimeout);
}

TEST(Tls, NamesACaFileThatCannotBeRead) {
  const auto context = TlsContext::Create({.ca_file = "/no/such/ca.pem"});
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(context.error().message, HasSubstr("/no/such/ca.pem"));
}

}  // namespace
}  // namespace mooncake
