#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "mooncake-common/src/net/http/client.h"
#include "mooncake-common/src/net/http/server.h"
#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

// Long enough that only a hang meets it.
HttpClientOptions Patient() { return {.total_timeout = kHangLimit, .connect_timeout = kHangLimit}; }

// Answers the n-th connection by the n-th script: reads requests up to their blank line and writes
// each text in turn, then closes.
class ScriptedServer {
 public:
  using Script = std::vector<std::string>;

  explicit ScriptedServer(std::vector<Script> scripts) {
    listener_ = *SocketListen("127.0.0.1", 0);
    port_ = *LocalPort(listener_.get());
    thread_ = std::thread([this, scripts = std::move(scripts)] {
      for (const Script& script : scripts) {
        if (!WaitReady(listener_.get(), POLLIN, HangDeadline())) {
          return;
        }
        Serve(*SocketAccept(listener_.get(), nullptr), script);
      }
    });
  }

  ~ScriptedServer() { thread_.join(); }

  std::string Url(std::string_view path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
  }

  // After the destructor would have joined: what was received, all requests in one text.
  std::string Received() {
    thread_.join();
    thread_ = std::thread([] {});
    return received_;
  }

 private:
  void Serve(UniqueFd fd, const Script& script) {
    std::string request;
    for (const std::string& answer : script) {
      while (!request.contains("\r\n\r\n") && ReadMore(fd.get(), request)) {
      }
      received_ += request;
      request.clear();
      (void)SocketWrite(fd.get(), std::as_bytes(std::span(answer)));
    }
  }

  static bool ReadMore(int fd, std::string& to) {
    std::array<char, 4096> buffer{};
    if (!WaitReady(fd, POLLIN, HangDeadline())) {
      return false;
    }
    const IoOutcome outcome = SocketRead(fd, std::as_writable_bytes(std::span(buffer)));
    const bool moved = outcome.kind == IoOutcome::Kind::kMoved;
    to.append(buffer.data(), moved ? outcome.bytes : 0);
    return moved || outcome.kind == IoOutcome::Kind::kWouldBlock;
  }

  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::string received_;
  std::thread thread_;
};

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class HttpClientTest : public testing::Test {
 protected:
  void SetUp() override {
    server_.SetFallback([](const HttpRequest& request) {
      return HttpResponse{.content_type = "text/plain",
                          .body = request.method + " " + request.path + " " + request.body};
    });
    ASSERT_TRUE(server_.Start());
    url_ = "http://" + host_ + ":" + std::to_string(server_.port());
  }

  // Of its own, so that a server that was stopped gets its port back.
  const std::string host_ = OwnLoopbackHost();
  HttpServer server_{{.host = host_}};
  std::string url_;
};

TEST_F(HttpClientTest, SpeaksEachMethodOverOneConnection) {
  HttpClient client(Patient());
  EXPECT_EQ(client.Get(url_ + "/a")->body, "GET /a ");
  EXPECT_EQ(client.Put(url_ + "/b", "text/plain", "x")->body, "PUT /b x");
  EXPECT_EQ(client.Post(url_ + "/c", "text/plain", "")->body, "POST /c ");
  EXPECT_EQ(client.Delete(url_ + "/d")->body, "DELETE /d ");
  EXPECT_EQ(client.Send({.method = "HEAD", .url = url_})->body, "");
  EXPECT_EQ(client.Get(url_)->content_type, "text/plain");
  EXPECT_EQ(client.connections_opened(), 1);
}

TEST_F(HttpClientTest, ServesManyThreadsAtOnce) {
  HttpClient client(Patient());
  constexpr int kThreads = 8;
  constexpr int kRequests = 50;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        const std::string path = "/" + std::to_string(t) + "/" + std::to_string(i);
        const auto response = client.Get(url_ + path);
        right += response && response->body == "GET " + path + " " ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(right, kThreads * kRequests);
  EXPECT_LE(client.connections_opened(), kThreads);
}

TEST_F(HttpClientTest, MovesLargeBodiesBothWays) {
  HttpServer large({.host = "127.0.0.1", .limits = {.body_bytes = 8 << 20}});
  large.SetFallback([](const HttpRequest& request) { return HttpResponse{.body = request.body}; });
  ASSERT_TRUE(large.Start());
  HttpClient client(Patient());
  const std::string body(8 << 20, 'x');
  const auto response =
      client.Put("http://127.0.0.1:" + std::to_string(large.port()) + "/", "a/b", body);
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->body, body);
}

TEST_F(HttpClientTest, ReadsTheAnswerOfAServerThatRefusesItsBody) {
  HttpClient client(Patient());
  const auto response = client.Put(url_, "a/b", std::string(3 << 20, 'x'));
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->status, 413);
}

TEST_F(HttpClientTest, ComesBackAfterTheServerWasRestarted) {
  HttpClient client(Patient());
  ASSERT_TRUE(client.Get(url_));
  server_.Stop();
  const auto refused = client.Get(url_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  HttpServer again({.host = host_, .port = server_.port()});
  ASSERT_TRUE(again.Start());
  EXPECT_EQ(client.Get(url_)->status, 404);
}

TEST_F(HttpClientTest, NoticesThatAKeptConnectionIsClosedBeforeItSendsAPost) {
  HttpClient client(Patient());
  ASSERT_TRUE(client.Get(url_));
  server_.Stop();
  HttpServer again({.host = host_, .port = server_.port()});
  ASSERT_TRUE(again.Start());
  const auto response = client.Post(url_, "text/plain", "once");
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(client.connections_opened(), 2);
}

TEST_F(HttpClientTest, ReachesALocalNameAndAnIpv6Address) {
  HttpServer any({.host = "::"});
  ASSERT_TRUE(any.Start());
  HttpClient client(Patient());
  for (const std::string host : {"localhost", "127.0.0.1", "[::1]"}) {
    const auto response = client.Get("http://" + host + ":" + std::to_string(any.port()) + "/x");
    ASSERT_TRUE(response) << response.error().ToString();
    EXPECT_EQ(response->status, 404);
  }
}

TEST(HttpClient, SendsTheHeadersThatWereObserved) {
  ScriptedServer server({{kOk, kOk}});
  HttpClient client(Patient());
  const std::string url = server.Url("/metadata?key=mooncake%2Framm%2Fa");
  ASSERT_TRUE(client.Get(url));
  ASSERT_TRUE(client.Send(
      {.method = "DELETE", .url = url, .headers = {{"Authorization", "Bearer token"}}}));
  const std::string host = server.Url("").substr(7);
  EXPECT_EQ(server.Received(), "GET /metadata?key=mooncake%2Framm%2Fa HTTP/1.1\r\nHost: " + host +
                                   "\r\nAccept: */*\r\n\r\n"
                                   "DELETE /metadata?key=mooncake%2Framm%2Fa HTTP/1.1\r\nHost: " +
                                   host + "\r\nAccept: */*\r\nAuthorization: Bearer token\r\n\r\n");
}

TEST(HttpClient, SendsAgainWhenAKeptConnectionWasClosed) {
  // The first connection answers once and dies at the second request.
  ScriptedServer server({{kOk, ""}, {kOk}});
  HttpClient client(Patient());
  ASSERT_TRUE(client.Get(server.Url()));
  const auto second = client.Get(server.Url());
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_EQ(second->body, "ok");
  EXPECT_EQ(client.connections_opened(), 2);
}

TEST(HttpClient, DoesNotSendAPostTwice) {
  ScriptedServer server({{kOk, ""}});
  HttpClient client(Patient());
  ASSERT_TRUE(client.Get(server.Url()));
  const auto post = client.Post(server.Url(), "a/b", "");
  ASSERT_FALSE(post);
  EXPECT_EQ(post.error().code, ErrorCode::kUnavailable);
}

TEST(HttpClient, DoesNotReuseAConnectionThatTheServerWillClose) {
  ScriptedServer server(
      {{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na"},
       {"HTTP/1.1 200 OK\r\n\r\nto the end"},
       // Bytes after the answer: whose are they?
       {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nbHTTP/1.1 500 Late\r\n\r\n", kOk},
       {kOk}});
  HttpClient client(Patient());
  EXPECT_EQ(client.Get(server.Url())->body, "a");
  EXPECT_EQ(client.Get(server.Url())->body, "to the end");
  EXPECT_EQ(client.Get(server.Url())->body, "b");
  EXPECT_EQ(client.Get(server.Url())->body, "ok");
  EXPECT_EQ(client.connections_opened(), 4);
}

TEST(HttpClient, ReportsAnswersThatAreNoneCutOrTooLarge) {
  ScriptedServer server({{"SSH-2.0-OpenSSH_9.2\r\n\r\n"},
                         {""},
                         {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut"},
                         {"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n"}});
  HttpClientOptions options = Patient();
  options.response_limits.body_bytes = 100;
  HttpClient client(options);
  EXPECT_EQ(client.Get(server.Url()).error().code, ErrorCode::kMalformed);
  EXPECT_EQ(client.Get(server.Url()).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.Get(server.Url()).error().code, ErrorCode::kUnavailable);
  const auto large = client.Get(server.Url("/x"));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(large.error().message,
              AllOf(StartsWith("GET http://127.0.0.1:"), HasSubstr("/x: "), HasSubstr("larger")));
}

TEST(HttpClient, SaysThatNobodyListens) {
  const RefusingPort refusing;
  HttpClient client(Patient());
  const auto response = client.Get("http://127.0.0.1:" + std::to_string(refusing.port()) + "/");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message,
              AllOf(HasSubstr(std::to_string(refusing.port())), HasSubstr("refused")));
}

TEST(HttpClient, GivesUpOnAServerThatNeverAnswers) {
  const UniqueFd silent = *SocketListen("127.0.0.1", 0);
  HttpClient client({.total_timeout = 30ms, .connect_timeout = kHangLimit});
  const auto response =
      client.Get("http://127.0.0.1:" + std::to_string(*LocalPort(silent.get())) + "/");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(response.error().message, HasSubstr("30 ms in all"));
}

TEST(HttpClient, SaysThatAHostIsUnknown) {
  HttpClient client(Patient());
  // No name has a part of more than 63 letters: it is unknown without asking a name server, which
  // may be absent or slow.
  const std::string host = std::string(64, 'x') + ".invalid";
  const auto response = client.Get("http://" + host + "/");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kDns);
  EXPECT_THAT(response.error().message, HasSubstr(host));
}

TEST(HttpClient, RefusesABadUrlBeforeAnyConnection) {
  HttpClient client(Patient());
  EXPECT_EQ(client.Get("metadata:8080").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(client.Get("http://a/ b").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(client.connections_opened(), 0);
}

}  // namespace
}  // namespace mooncake
