#include "mooncake-common/src/net/resolve.h"

#include <fmt/format.h>

#include <atomic>
#include <future>
#include <memory>
#include <utility>

#include "mooncake-common/src/base/text.h"
#include "mooncake-common/src/concurrency/thread.h"

namespace mooncake {
namespace {

constexpr int kMaxLookups = 64;
std::atomic<int> g_lookups{0};

}  // namespace

void ResolveLater(NameLookup lookup, const std::string& host, std::uint16_t port,
                  std::move_only_function<void(Result<Addresses>)> done) {
  if (g_lookups.fetch_add(1) >= kMaxLookups) {
    g_lookups.fetch_sub(1);
    return done(Fail(ErrorCode::kExhausted,
                     fmt::format("resolve host {}: {} lookups wait for an answer already; is the "
                                 "name server reachable?",
                                 Quote(host), kMaxLookups)));
  }
  // Shared, because a thread that is not given must leave `done` to us.
  const auto shared_done = std::make_shared<decltype(done)>(std::move(done));
  auto started =
      Thread::StartDetached("mc-resolve", [lookup = std::move(lookup), host, port, shared_done] {
        Result<Addresses> addresses = lookup(host, port);
        g_lookups.fetch_sub(1);
        (*shared_done)(std::move(addresses));
      });
  if (!started) {
    g_lookups.fetch_sub(1);
    started.error().message.insert(0, fmt::format("resolve host {}: ", Quote(host)));
    (*shared_done)(std::unexpected(std::move(started).error()));
  }
}

Result<Addresses> ResolveAll(const std::string& host, std::uint16_t port, Instant deadline,
                             NameLookup lookup) {
  if (Result<Addresses> number = ResolveNumber(host, port)) {
    return number;
  }
  std::promise<Result<Addresses>> promise;
  auto answer = promise.get_future();
  ResolveLater(std::move(lookup), host, port,
               [promise = std::move(promise)](Result<Addresses> found) mutable {
                 promise.set_value(std::move(found));
               });
  if (answer.wait_for(deadline - SteadyClock::Get().Now()) != std::future_status::ready) {
    return Fail(ErrorCode::kTimeout,
                fmt::format("resolve host {}: no answer in time; is the name server reachable?",
                            Quote(host)));
  }
  return answer.get();
}

}  // namespace mooncake
