#include "mooncake-store/src/client/descriptor_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;

constexpr Instant kNow{std::chrono::seconds(100)};

std::shared_ptr<const Location> Version(std::uint64_t version) {
  auto location = std::make_shared<Location>();
  location->version = version;
  return location;
}

void Offer(DescriptorCache& cache, std::string_view key, std::uint64_t version, Instant until) {
  cache.Offer(key, Version(version), until, cache.TicketFor(key));
}

TEST(DescriptorCache, KnowsAKeyWhileItsLeaseLives) {
  DescriptorCache cache(1024);
  EXPECT_EQ(cache.Find("k", kNow).location, nullptr);
  Offer(cache, "k", 5, kNow + milliseconds(10));
  const auto hit = cache.Find("k", kNow + milliseconds(9));
  ASSERT_NE(hit.location, nullptr);
  EXPECT_EQ(hit.location->version, 5U);
  EXPECT_EQ(hit.lease_until, kNow + milliseconds(10));
  EXPECT_EQ(cache.Find("l", kNow).location, nullptr);
  EXPECT_EQ(cache.Find("k", kNow + milliseconds(10)).location, nullptr);
}

TEST(DescriptorCache, CannotBeFedWithWhatWasAskedBeforeItForgot) {
  DescriptorCache cache(1024);
  const auto ticket = cache.TicketFor("k");
  cache.Forget("k");
  cache.Offer("k", Version(1), kNow + milliseconds(10), ticket);
  EXPECT_EQ(cache.Find("k", kNow).location, nullptr);
  const auto before_clear = cache.TicketFor("k");
  cache.Clear();
  cache.Offer("k", Version(1), kNow + milliseconds(10), before_clear);
  EXPECT_EQ(cache.Find("k", kNow).location, nullptr);
}

TEST(DescriptorCache, KeepsTheNewestVersionAndItsLongestLease) {
  DescriptorCache cache(1024);
  Offer(cache, "k", 2, kNow + milliseconds(20));
  Offer(cache, "k", 2, kNow + milliseconds(10));
  EXPECT_EQ(cache.Find("k", kNow).lease_until, kNow + milliseconds(20));
  Offer(cache, "k", 1, kNow + milliseconds(30));
  EXPECT_EQ(cache.Find("k", kNow).location->version, 2U);
  Offer(cache, "k", 3, kNow + milliseconds(5));
  EXPECT_EQ(cache.Find("k", kNow).lease_until, kNow + milliseconds(5));
}

TEST(DescriptorCache, OfNoCapacityKeepsNothing) {
  DescriptorCache cache(0);
  Offer(cache, "k", 1, kNow + milliseconds(10));
  EXPECT_EQ(cache.Find("k", kNow).location, nullptr);
  cache.Forget("k");
  cache.Clear();
}

// Goal: a hit is always what was offered last for that key and not forgotten since; the bound
// holds. Method: random offers, looks and forgets against a map that forgets nothing by itself.
TEST(DescriptorCache, NeverKnowsMoreThanItsTwinForAnySeed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    DescriptorCache cache(512);
    std::map<std::string, std::pair<std::uint64_t, Instant>> twin;
    Instant now = kNow;
    std::size_t hits = 0;
    for (std::uint64_t step = 1; step < 20'000; ++step) {
      const std::string key = "key" + std::to_string(rng.Uniform(1000));
      now += milliseconds(rng.Uniform(2));
      switch (rng.Uniform(4)) {
        case 0:
          twin[key] = {step, now + milliseconds(rng.Uniform(500))};
          Offer(cache, key, step, twin[key].second);
          break;
        case 1:
          if (rng.Chance(1, 10)) {
            cache.Forget(key);
            twin.erase(key);
          }
          break;
        default: {
          const auto hit = cache.Find(key, now);
          if (hit.location != nullptr) {
            ++hits;
            ASSERT_TRUE(twin.contains(key));
            EXPECT_EQ(hit.location->version, twin[key].first);
            EXPECT_GT(twin[key].second, now);
          }
        }
      }
    }
    EXPECT_GT(hits, 100U);
  }
}

TEST(DescriptorCache, ServesManyThreads) {
  DescriptorCache cache(512);
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      Rng rng(static_cast<std::uint64_t>(t));
      for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t number = rng.Uniform(200);
        const std::string key = std::to_string(number);
        if (rng.Chance(1, 3)) {
          Offer(cache, key, number, kNow + milliseconds(1));
        } else if (rng.Chance(1, 10)) {
          cache.Forget(key);
        } else if (const auto hit = cache.Find(key, kNow); hit.location != nullptr) {
          EXPECT_EQ(hit.location->version, number);
        }
      }
    });
  }
}

}  // namespace
}  // namespace mooncake::store
