#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "mooncake-common/src/net/http/server.h"
#include "mooncake-common/src/net/http/stream.h"
#include "mooncake-common/src/test_support/loopback.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

// A client of bytes, not of HTTP.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, const std::string& host = "127.0.0.1") {
    const auto address = ResolveAddress(host, port);
    auto fd = ConnectSocket(std::array{*address}, HangDeadline());
    if (fd) {
      fd_ = *std::move(fd);
    }
  }

  bool connected() const { return static_cast<bool>(fd_); }

  // False when the server has closed already.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const IoOutcome outcome = SocketWrite(fd_.get(), std::as_bytes(std::span(bytes)));
      if (outcome.kind == IoOutcome::Kind::kMoved) {
        bytes.remove_prefix(outcome.bytes);
      } else if (outcome.kind != IoOutcome::Kind::kWouldBlock ||
                 !WaitReady(fd_.get(), POLLOUT, HangDeadline())) {
        return false;
      }
    }
    return true;
  }

  void FinishSending() { (void)shutdown(fd_.get(), SHUT_WR); }

  // Reads until `mark` has come `times` times, or to the end of the connection.
  std::string ReadUntil(std::string_view mark, int times = 1) {
    while (Count(mark) < times && ReadMore()) {
    }
    return std::exchange(received_, {});
  }

  std::string ReadToEnd() {
    while (ReadMore()) {
    }
    return std::exchange(received_, {});
  }

 private:
  int Count(std::string_view mark) const {
    int count = 0;
    for (std::size_t at = received_.find(mark); at != std::string::npos;
         at = received_.find(mark, at + mark.size())) {
      ++count;
    }
    return count;
  }

  bool ReadMore() {
    std::array<char, 4096> buffer{};
    if (!WaitReady(fd_.get(), POLLIN, HangDeadline())) {
      return false;
    }
    const IoOutcome outcome = SocketRead(fd_.get(), std::as_writable_bytes(std::span(buffer)));
    const bool moved = outcome.kind == IoOutcome::Kind::kMoved;
    received_.append(buffer.data(), moved ? outcome.bytes : 0);
    return moved || outcome.kind == IoOutcome::Kind::kWouldBlock;
  }

  UniqueFd fd_;
  std::string received_;
};

// Its answer "done" takes steps until `go_on` is set, and some more.
struct Stepping {
  std::atomic<bool> go_on{false};
  std::atomic<int> steps{0};

  HttpHandler Handler() {
    return [this](const HttpRequest&) -> HttpAnswer {
      return [this, left = 3]() mutable -> std::optional<HttpResponse> {
        ++steps;
        if (!go_on || --left > 0) {
          return std::nullopt;
        }
        return HttpResponse{.body = "done"};
      };
    };
  }
};

// Echoes at /echo, fails at /throw and, later, at /throw/later; /steps is `stepping`'s.
std::unique_ptr<HttpServer> MakeServer(HttpServerOptions options = {},
                                       Stepping* stepping = nullptr) {
  if (options.host == HttpServerOptions().host) {
    options.host = "127.0.0.1";
  }
  auto server = std::make_unique<HttpServer>(std::move(options));
  server->Handle("GET", "/hello", [](const HttpRequest&) {
    return HttpResponse{.content_type = "text/plain", .body = "hello"};
  });
  const auto echo = [](const HttpRequest& request) {
    return HttpResponse{.body = request.method + ":" +
                                std::string(request.Query("q").value_or("-")) + ":" + request.body +
                                "!"};
  };
  server->Handle("GET", "/echo", echo);
  server->Handle("PUT", "/echo", echo);
  server->Handle("GET", "/only", echo);
  server->Handle(Router::kAnyMethod, "/only", [](const HttpRequest&) {
    return HttpResponse{.status = 405, .body = "Method not allowed"};
  });
  server->Handle("GET", "/throw",
                 [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("secret"); });
  server->Handle("GET", "/throw/later", [](const HttpRequest&) -> HttpAnswer {
    return []() -> std::optional<HttpResponse> { throw std::runtime_error("secret"); };
  });
  if (stepping != nullptr) {
    server->Handle("GET", "/steps", stepping->Handler());
  }
  server->Handle("GET", "/large", [](const HttpRequest&) {
    return HttpResponse{.body = std::string(32 << 20, 'x')};
  });
  const Result<void> started = server->Start();
  EXPECT_TRUE(started) << started.error().ToString();
  return server;
}

void WaitForConnections(const HttpServer& server, std::uint64_t count) {
  EXPECT_TRUE(WaitUntil([&] { return server.stats().connections_now == count; }))
      << server.stats().connections_now;
}

TEST(HttpServer, AnswersSeveralRequestsOnOneConnection) {
  const auto server = MakeServer();
  RawClient client(server->port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(client.ReadUntil("hello"),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
  }
  EXPECT_EQ(server->stats().connections, 1);
  EXPECT_EQ(server->stats().requests, 3);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  const auto server = MakeServer();
  RawClient client(server->port());
  std::string requests;
  constexpr int kCount = 500;
  for (int i = 0; i < kCount; ++i) {
    requests += "PUT /echo?q=" + std::to_string(i) + " HTTP/1.1\r\nContent-Length: 2\r\n\r\nab";
  }
  ASSERT_TRUE(client.Send(requests));
  const std::string answers = client.ReadUntil(":ab!", kCount);
  std::size_t at = 0;
  for (int i = 0; i < kCount; ++i) {
    at = answers.find("PUT:" + std::to_string(i) + ":ab!", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(HttpServer, TakesARequestByteByByte) {
  const auto server = MakeServer();
  RawClient client(server->port());
  for (const char c :
       std::string_view("PUT /echo?q=a%20b HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz")) {
    ASSERT_TRUE(client.Send(std::string_view(&c, 1)));
  }
  EXPECT_THAT(client.ReadUntil("!"), EndsWith("PUT:a b:xyz!"));
}

TEST(HttpServer, TakesAChunkedBody) {
  const auto server = MakeServer();
  RawClient client(server->port());
  ASSERT_TRUE(
      client.Send("PUT /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "2\r\nab\r\n3;x=y\r\ncde\r\n0\r\n\r\n"));
  EXPECT_THAT(client.ReadUntil("!"), EndsWith("PUT:-:abcde!"));
}

TEST(HttpServer, TellsAWaitingClientToSendItsBody) {
  const auto server = MakeServer();
  RawClient client(server->port());
  ASSERT_TRUE(
      client.Send("PUT /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(client.Send("ok"));
  EXPECT_THAT(client.ReadUntil("!"), EndsWith("PUT:-:ok!"));
}

TEST(HttpServer, GivesEachUnknownThingTheAnswerThatWasRegistered) {
  const auto server = MakeServer();
  const auto ask = [&](const std::string& line) {
    RawClient client(server->port());
    EXPECT_TRUE(client.Send(line + " HTTP/1.1\r\nConnection: close\r\n\r\n"));
    return client.ReadToEnd();
  };
  EXPECT_THAT(ask("GET /nosuch"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("DELETE /echo"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("DELETE /only"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask("BREW /only"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask("get /hello"), StartsWith("HTTP/1.1 404 "));
  EXPECT_EQ(ask("HEAD /hello"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
            "Connection: close\r\n\r\n");
}

TEST(HttpServer, SurvivesAHandlerThatThrowsAndHidesItsWords) {
  const auto server = MakeServer();
  RawClient client(server->port());
  ASSERT_TRUE(client.Send("GET /throw HTTP/1.1\r\n\r\nGET /hello HTTP/1.1\r\n\r\n"));
  const std::string answers = client.ReadUntil("hello");
  EXPECT_THAT(answers, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(answers, ::testing::Not(HasSubstr("secret")));
  EXPECT_THAT(answers, EndsWith("hello"));
}

TEST(HttpServer, ServesOthersBetweenTheStepsOfALongAnswer) {
  Stepping stepping;
  const auto server = MakeServer({}, &stepping);
  RawClient slow(server->port());
  // What comes before is answered before, what comes after it waits.
  ASSERT_TRUE(
      slow.Send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
                "GET /steps HTTP/1.1\r\nHost: a\r\n\r\n"
                "HEAD /steps HTTP/1.1\r\nHost: a\r\n\r\n"
                "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_THAT(slow.ReadUntil("hello"), EndsWith("\r\n\r\nhello"));
  RawClient other(server->port());
  ASSERT_TRUE(other.Send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_THAT(other.ReadUntil("hello"), EndsWith("\r\n\r\nhello"));
  stepping.go_on = true;
  const std::string rest = slow.ReadUntil("hello");
  EXPECT_LT(rest.find("\r\n\r\ndoneHTTP/1.1 200 OK"), rest.find("hello")) << rest;
  EXPECT_THAT(rest, HasSubstr("Content-Length: 4\r\n\r\nHTTP/1.1 200 OK")) << "of HEAD";
}

TEST(HttpServer, GivesALongAnswerTheTimeItTakes) {
  Stepping stepping;
  const auto server = MakeServer({.idle_timeout = 20ms, .request_timeout = 20ms}, &stepping);
  RawClient client(server->port());
  ASSERT_TRUE(client.Send("GET /steps HTTP/1.1\r\nHost: a\r\n\r\n"));
  // Two whole timeouts of another connection are more than two of this one's.
  for (int i = 0; i < 2; ++i) {
    RawClient(server->port()).ReadToEnd();
  }
  stepping.go_on = true;
  EXPECT_THAT(client.ReadUntil("done"), EndsWith("done"));
}

TEST(HttpServer, DropsTheStepsOfALongAnswerWhenStopped) {
  Stepping stepping;
  const auto server = MakeServer({.drain_timeout = 20ms}, &stepping);
  RawClient client(server->port());
  ASSERT_TRUE(client.Send("GET /steps HTTP/1.1\r\nHost: a\r\n\r\n"));
  ASSERT_TRUE(WaitUntil([&] { return stepping.steps > 0; }));
  server->Stop();
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_EQ(server->stats().connections_now, 0U);
}

TEST(HttpServer, SurvivesAStepThatThrows) {
  const auto server = MakeServer();
  RawClient client(server->port());
  ASSERT_TRUE(
      client.Send("GET /throw/later HTTP/1.1\r\nHost: a\r\n\r\n"
                  "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"));
  const std::string answers = client.ReadUntil("hello");
  EXPECT_THAT(answers, StartsWith("HTTP/1.1 500 Internal Server Error\r\n"));
  EXPECT_THAT(answers, EndsWith("\r\n\r\nhello"));
  EXPECT_EQ(answers.find("secret"), std::string::npos);
}

TEST(HttpServer, KeepsAnHttp10ConnectionOnlyWhenAsked) {
  const auto server = MakeServer();
  RawClient once(server->port());
  ASSERT_TRUE(once.Send("GET /hello HTTP/1.0\r\n\r\n"));
  EXPECT_THAT(once.ReadToEnd(), HasSubstr("Connection: close"));
  RawClient kept(server->port());
  ASSERT_TRUE(kept.Send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_THAT(kept.ReadUntil("hello"), HasSubstr("Connection: keep-alive"));
  ASSERT_TRUE(kept.Send("GET /hello HTTP/1.0\r\n\r\n"));
  EXPECT_THAT(kept.ReadToEnd(), EndsWith("hello"));
}

TEST(HttpServer, SaysWhyItRefusesAndCloses) {
  const auto server = MakeServer(
      {.limits = {.header_bytes = 512, .body_bytes = 100}, .linger_timeout = kHangLimit});
  const auto ask = [&](const std::string& bytes) {
    RawClient client(server->port());
    (void)client.Send(bytes);
    return client.ReadToEnd();
  };
  const std::string large(3 << 20, 'x');
  EXPECT_THAT(ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET /%zz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("PUT /echo HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET /" + large), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nA: " + large), StartsWith("HTTP/1.1 431 "));
  // All of the body is sent before the answer is read: it must not be lost to a reset.
  EXPECT_THAT(ask("PUT /echo HTTP/1.1\r\nContent-Length: 3145728\r\n\r\n" + large),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("PUT /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n300000\r\n" + large),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(server->stats().refused, 7);
  EXPECT_EQ(server->stats().requests, 0);
}

// Goal: no bytes stop the server or leave a connection behind. Method: damaged and cut requests,
// each on a connection of its own, half of which go without waiting for an answer.
TEST(HttpServer, GoesOnServingWhateverItIsSent) {
  const auto server = MakeServer({.limits = {.header_bytes = 512, .body_bytes = 100}});
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    std::mt19937 random(seed);
    std::string bytes =
        "PUT /echo?q=%41 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\n\r\nGET /hello HTTP/1.1\r\nConnection: close\r\n\r\n";
    for (std::uint32_t flips = random() % 4; flips > 0; --flips) {
      char& flipped = bytes[random() % bytes.size()];
      flipped = static_cast<char>(static_cast<unsigned char>(flipped) ^ (1U << (random() % 8)));
    }
    RawClient client(server->port());
    ASSERT_TRUE(client.connected());
    (void)client.Send(std::string_view(bytes).substr(0, random() % (bytes.size() + 1)));
    if (random() % 2 == 0) {
      client.FinishSending();
      (void)client.ReadToEnd();
    }
  }
  WaitForConnections(*server, 0);
  RawClient client(server->port());
  ASSERT_TRUE(client.Send("GET /hello HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(client.ReadUntil("hello"), EndsWith("hello"));
}

TEST(HttpServer, EndsSilentConnectionsSilently) {
  const auto server = MakeServer({.idle_timeout = 50ms});
  RawClient silent(server->port());
  EXPECT_EQ(silent.ReadToEnd(), "");
  WaitForConnections(*server, 0);
}

TEST(HttpServer, EndsSlowRequestsWith408) {
  const auto server = MakeServer({.request_timeout = 50ms});
  for (const std::string_view begun : {"G", "GET /hello HTTP/1.1\r\nA: b\r\n",
                                       "PUT /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"}) {
    RawClient slow(server->port());
    ASSERT_TRUE(slow.Send(begun));
    EXPECT_THAT(slow.ReadToEnd(), StartsWith("HTTP/1.1 408 ")) << begun;
  }
  WaitForConnections(*server, 0);
}

// Goal: a client that always has a request half sent is served as long as each arrives in time.
// Method: such a client, for longer than a request may take. If the machine held it up for so long
// within one request, the refusal was right: again with more time.
TEST(HttpServer, GivesEachOfManyPipelinedRequestsItsOwnTime) {
  for (Duration limit = 100ms; limit < kHangLimit; limit *= 2) {
    const auto server = MakeServer({.request_timeout = limit});
    RawClient client(server->port());
    const Instant begin = SteadyClock::Get().Now();
    Instant begun = begin;  // Before the first byte of the request that is under way.
    ASSERT_TRUE(client.Send("GET /hello HT"));
    std::string answer;
    do {
      const Instant next = SteadyClock::Get().Now();
      (void)client.Send("TP/1.1\r\n\r\nGET /hello HT");
      answer = client.ReadUntil("hello");
      if (answer.ends_with("hello")) {
        begun = next;
      }
    } while (answer.ends_with("hello") && begun - begin <= limit);
    if (answer.ends_with("hello")) {
      return;
    }
    ASSERT_GE(SteadyClock::Get().Now() - begun, limit) << answer;
  }
  FAIL() << "the machine stood still again and again";
}

TEST(HttpServer, CountsTheTimeOfARequestFromItsFirstByte) {
  const auto server = MakeServer({.limits = {.header_bytes = 64 << 20}, .request_timeout = 50ms});
  RawClient dripping(server->port());
  // Some byte comes long before each timeout; still it ends.
  EXPECT_TRUE(WaitUntil([&] {
    (void)dripping.Send("x");
    return server->stats().refused == 1;
  })) << "it went on as long as bytes came";
  EXPECT_THAT(dripping.ReadToEnd(), StartsWith("HTTP/1.1 408 "));
}

TEST(HttpServer, ServesOthersWhileOneDoesNotReadItsAnswer) {
  const auto server = MakeServer({.request_timeout = 300ms});
  RawClient stuck(server->port());
  const std::string large = "GET /large HTTP/1.1\r\n\r\n";
  ASSERT_TRUE(stuck.Send(large + large + large + large));
  RawClient quick(server->port());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(quick.Send("GET /hello HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(quick.ReadUntil("hello"), EndsWith("hello"));
  }
  WaitForConnections(*server, 1);  // The one that does not read is given up.
}

TEST(HttpServer, SendsALargeAnswerWhole) {
  const auto server = MakeServer();
  RawClient client(server->port());
  ASSERT_TRUE(client.Send("GET /large HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_GT(client.ReadToEnd().size(), 32U << 20);
}

TEST(HttpServer, ClosesTheLongestIdleConnectionToMakeRoom) {
  const auto server = MakeServer({.max_connections = 2});
  RawClient first(server->port());
  ASSERT_TRUE(first.Send("GET /hello HTTP/1.1\r\n\r\n"));
  (void)first.ReadUntil("hello");
  RawClient second(server->port());
  ASSERT_TRUE(second.Send("GET /hello HTTP/1.1\r\n\r\n"));
  (void)second.ReadUntil("hello");
  RawClient third(server->port());
  ASSERT_TRUE(third.Send("GET /hello HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(third.ReadUntil("hello"), EndsWith("hello"));
  EXPECT_EQ(first.ReadToEnd(), "");
  ASSERT_TRUE(second.Send("GET /hello HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(second.ReadUntil("hello"), EndsWith("hello"));
}

TEST(HttpServer, RefusesAConnectionWhenAllAreBusy) {
  const auto server = MakeServer({.max_connections = 1});
  RawClient busy(server->port());
  ASSERT_TRUE(busy.Send("PUT /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_THAT(busy.ReadUntil("\r\n\r\n"), HasSubstr("100 Continue"));
  RawClient late(server->port());
  EXPECT_THAT(late.ReadToEnd(), StartsWith("HTTP/1.1 503 "));
  ASSERT_TRUE(busy.Send("ok"));
  EXPECT_THAT(busy.ReadUntil("!"), EndsWith("ok!"));
}

TEST(HttpServer, CarriesAThousandIdleConnections) {
  rlimit files{};  // Both ends of each are in this process.
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  const auto server = MakeServer();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(std::make_unique<RawClient>(server->port()));
    ASSERT_TRUE(clients.back()->connected());
  }
  WaitForConnections(*server, 1000);
  for (const int i : {0, 500, 999}) {
    ASSERT_TRUE(clients[i]->Send("GET /hello HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(clients[i]->ReadUntil("hello"), EndsWith("hello"));
  }
  clients.clear();
  WaitForConnections(*server, 0);
}

TEST(HttpServer, StopsWhileClientsAreIdleBusyAndHalfWay) {
  const std::string host = OwnLoopbackHost();
  const auto server = MakeServer({.host = host, .drain_timeout = 50ms});
  RawClient idle(server->port(), host);
  RawClient half(server->port(), host);
  ASSERT_TRUE(half.Send("PUT /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_THAT(half.ReadUntil("\r\n\r\n"), HasSubstr("100 Continue"));
  WaitForConnections(*server, 2);
  server->Stop();
  server->Stop();
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_EQ(half.ReadToEnd(), "");
  EXPECT_FALSE(RawClient(server->port(), host).connected());
}

TEST(HttpServer, FinishesARequestUnderWayWhenStopped) {
  const std::string host = OwnLoopbackHost();
  const auto server = MakeServer({.host = host, .drain_timeout = kHangLimit});
  RawClient client(server->port(), host);
  ASSERT_TRUE(
      client.Send("PUT /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("100 Continue"));
  std::thread stopper([&] { server->Stop(); });
  EXPECT_TRUE(WaitUntil([&] { return !RawClient(server->port(), host).connected(); }));
  ASSERT_TRUE(client.Send("ok"));
  const std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_THAT(answer, EndsWith("ok!"));
  client = RawClient(0);  // Closes, so that the server need not wait for it.
  stopper.join();
}

TEST(HttpServer, MayBeStoppedBeforeItStarts) {
  HttpServer server;
  server.Stop();
  EXPECT_EQ(server.port(), 0);
  EXPECT_EQ(server.stats().connections, 0);
}

TEST(HttpServer, NamesThePortThatIsTakenAndTheRemedy) {
  const auto first = MakeServer();
  HttpServer second({.host = "127.0.0.1", .port = first->port()});
  const Result<void> started = second.Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(started.error().message, HasSubstr(std::to_string(first->port())));
  EXPECT_THAT(started.error().message, HasSubstr("ss -ltnp"));
}

TEST(HttpServer, CanListenAgainOnThePortItHadAtOnce) {
  const std::string host = OwnLoopbackHost();
  std::uint16_t port = 0;
  {
    const auto first = MakeServer({.host = host});
    port = first->port();
    RawClient client(port, host);
    ASSERT_TRUE(client.Send("GET /hello HTTP/1.1\r\n\r\n"));
    (void)client.ReadUntil("hello");
    first->Stop();  // The server closes first, so the connection stays in TIME_WAIT.
  }
  const auto again = MakeServer({.host = host, .port = port});
  EXPECT_EQ(again->port(), port);
}

TEST(HttpServer, SaysThatAnAddressIsNotOfThisMachine) {
  HttpServer server({.host = "192.0.2.77"});
  const Result<void> started = server.Start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("192.0.2.77"));
  EXPECT_THAT(started.error().message, HasSubstr("address of this machine"));
}

}  // namespace
}  // namespace mooncake
