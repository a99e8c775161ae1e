#include "mooncake-common/src/net/resolve.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

Addresses Of(const char* number) { return {ResolveAddress(number, 80).value()}; }

// A name server that answers when told to. Lookups outlive the test: they share the word.
struct SlowNames {
  NameLookup Lookup() const {
    return [go = go](const std::string&, std::uint16_t) -> Result<Addresses> {
      (void)go->Wait(HangDeadline());
      return Of("10.0.0.1");
    };
  }
  const std::shared_ptr<Event> go = std::make_shared<Event>();
};

TEST(ResolveAll, TakesNumbersWithoutAskingAnybody) {
  const auto v4 = ResolveAll("127.0.0.1", 80, Instant{});
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->front().ToString(), "127.0.0.1:80");
  const auto v6 = ResolveAll("::1", 80, Instant{});
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->front().ToString(), "[::1]:80");
}

TEST(ResolveAll, DoesNotWaitBeyondItsDeadline) {
  const SlowNames names;
  const auto late = ResolveAll("slow", 80, Instant{}, names.Lookup());
  names.go->Notify();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
}

TEST(ResolveAll, WaitsForAnAnswerUntilThen) {
  const SlowNames names;
  names.go->Notify();
  const auto found = ResolveAll("slow", 80, HangDeadline(), names.Lookup());
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_EQ(found->front().ToString(), "10.0.0.1:80");
}

TEST(ResolveLater, LeavesSignalsToTheHostProgram) {
  const auto inside = std::make_shared<sigset_t>();
  const NameLookup lookup = [inside](const std::string&, std::uint16_t) -> Result<Addresses> {
    pthread_sigmask(SIG_SETMASK, nullptr, inside.get());
    return Of("10.0.0.1");
  };
  ASSERT_TRUE(ResolveAll("name", 80, HangDeadline(), lookup));
  EXPECT_EQ(sigismember(inside.get(), SIGINT), 1);
}

// Goal: names that no server answers for do not fill the process with threads, and room comes back.
TEST(ResolveLater, RefusesTheLookupThatIsOneTooMany) {
  const SlowNames names;
  const auto ended = std::make_shared<std::atomic<int>>(0);
  const auto refused = std::make_shared<std::atomic<int>>(0);
  constexpr int kMore = 100;
  for (int i = 0; i < kMore; ++i) {
    ResolveLater(names.Lookup(), "slow", 80, [ended, refused](const Result<Addresses>& found) {
      *refused += found || found.error().code != ErrorCode::kExhausted ? 0 : 1;
      ++*ended;
    });
  }
  EXPECT_GE(*refused, kMore - 64);
  EXPECT_LT(*refused, kMore);
  names.go->Notify();
  EXPECT_TRUE(WaitUntil([&] { return *ended == kMore; }));
  EXPECT_TRUE(WaitUntil([&] { return ResolveAll("slow", 80, HangDeadline(), names.Lookup()); }));
}

}  // namespace
}  // namespace mooncake
