// Requests per second of one client thread over one kept connection, server and client in one
// process. Each side wakes once a request, so 20 us is good where a
// sleeping thread wakes in a few, and 100 us where it takes 30-70. Parsing alone
// should take about a microsecond.
#include <benchmark/benchmark.h>

#include <string>
#include <string_view>

#include "mooncake-common/src/net/http/client.h"
#include "mooncake-common/src/net/http/server.h"

namespace mooncake {
namespace {

void BmGetOverKeptConnection(benchmark::State& state) {
  HttpServer server({.host = "127.0.0.1"});
  server.Handle("GET", "/metadata", [](const HttpRequest&) {
    return HttpResponse{.content_type = "application/json", .body = "{}"};
  });
  MC_CHECK(server.Start());
  HttpClient client;
  const std::string url = WithQueryParameter(
      "http://127.0.0.1:" + std::to_string(server.port()) + "/metadata", "key", "mooncake/ram/a");
  for (auto _ : state) {
    const auto response = client.Get(url);
    if (!response) {
      state.SkipWithError(response.error().message.c_str());
      break;
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BmGetOverKeptConnection)->UseRealTime();

void BmParseRequest(benchmark::State& state) {
  constexpr std::string_view kRequest =
      "GET /metadata?key=mooncake%2Fram%2F127.0.0.1%3A12345 HTTP/1.1\r\n"
      "Host: 127.0.0.1:8080\r\nAccept: */*\r\n\r\n";
  for (auto _ : state) {
    RequestParser parser(HttpLimits{});
    benchmark::DoNotOptimize(parser.Feed(kRequest));
    benchmark::DoNotOptimize(parser.Take());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BmParseRequest);

}  // namespace
}  // namespace mooncake
