// Goal: the learned policy is never much worse than LRU, whatever the workload, and keeps its
// promises after every operation. Method: workloads that favour LRU, or that break policies which
// learn; both policies behind the same harness.
#include "mooncake-store/src/master/eviction/policy_replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/eviction/checked_policy.h"
#include "mooncake-store/src/master/eviction/policies.h"
#include "mooncake-store/src/master/eviction/trace.h"

namespace mooncake::store {
namespace {

constexpr std::uint32_t kCapacity = 2000;
constexpr std::uint64_t kAsked = 200000;  // Blocks a workload asks for.

// Document `number` of a collection, as a chain of 4 to 40 blocks of its own.
Chain Document(std::uint64_t collection, std::uint64_t number) {
  Rng rng(collection * 1000003 + number);
  Chain chain(rng.Between(4, 40));
  for (std::uint64_t& block : chain) {
    block = rng.Next();
  }
  return chain;
}

// Numbers below `count`, number i with a weight of 1 / (i + 1).
class Zipf {
 public:
  explicit Zipf(std::size_t count) {
    double sum = 0;
    for (std::size_t number = 0; number < count; ++number) {
      sum += 1 / static_cast<double>(number + 1);
      upto_.push_back(sum);
    }
  }
  std::uint64_t Draw(Rng& rng) const {
    const double at = rng.UnitInterval() * upto_.back();
    return static_cast<std::uint64_t>(std::ranges::upper_bound(upto_, at) - upto_.begin());
  }

 private:
  std::vector<double> upto_;
};

// What is asked for next; `asked` blocks have been so far.
using Workload = std::function<Chain(Rng& rng, std::uint64_t asked)>;

Workload Scan() {
  return [next = std::uint64_t{0}](Rng&, std::uint64_t) mutable { return Document(1, next++); };
}

Workload ZipfDocuments(std::uint64_t redrawn_every = ~std::uint64_t{0}) {
  return [zipf = Zipf(2000), redrawn_every](Rng& rng, std::uint64_t asked) {
    return Document(2 + asked / redrawn_every, zipf.Draw(rng));
  };
}

Workload HalfScanHalfZipf() {
  return [scan = Scan(), zipf = ZipfDocuments()](Rng& rng, std::uint64_t asked) {
    return rng.Chance(1, 2) ? scan(rng, asked) : zipf(rng, asked);
  };
}

// Each comes back, grown, a few requests after its last one, for some turns.
Workload Sessions(std::uint64_t others_between) {
  struct Session {
    Chain chain;
    std::uint64_t turns = 0;
  };
  return [sessions = std::vector<Session>(others_between + 1), turn = std::uint64_t{0}](
             Rng& rng, std::uint64_t) mutable {
    Session& session = sessions[turn++ % sessions.size()];
    if (session.turns == 0) {
      session = {.chain = Chain(8, 0), .turns = rng.Between(1, 6)};
      for (std::size_t block = 2; block < 8; ++block) {
        session.chain[block] = rng.Next();
      }
      session.chain[0] = 77;  // A system prompt of two blocks that all share.
      session.chain[1] = 78;
    }
    --session.turns;
    for (std::uint64_t grown = rng.Between(1, 8); grown > 0; --grown) {
      session.chain.push_back(rng.Next());
    }
    return session.chain;
  };
}

// Documents in turn, as often as it goes; together `times` as large as the store.
Workload Loop(double times) {
  return [times, next = std::uint64_t{0}, size = std::uint64_t{0}](Rng&, std::uint64_t) mutable {
    Chain chain = Document(3, next++);
    size += chain.size();
    if (static_cast<double>(size) >= times * kCapacity) {
      next = 0;
      size = 0;
    }
    return chain;
  };
}

Workload LoopAndSessionsInTurns() {
  return [loop = Loop(1.2), sessions = Sessions(4)](Rng& rng, std::uint64_t asked) {
    return asked / 40000 % 2 == 0 ? loop(rng, asked) : sessions(rng, asked);
  };
}

Workload DocumentsWithUniqueTails() {
  return [zipf = Zipf(200)](Rng& rng, std::uint64_t) {
    Chain chain = Document(4, zipf.Draw(rng));
    for (std::uint64_t tail = rng.Between(1, 16); tail > 0; --tail) {
      chain.push_back(rng.Next());
    }
    return chain;
  };
}

Workload GapTimesTenHalfway() {
  return [near = Sessions(5), far = Sessions(59)](Rng& rng, std::uint64_t asked) {
    return asked < kAsked / 2 ? near(rng, asked) : far(rng, asked);
  };
}

// Keys that are no chains at all.
Workload SinglesByZipf() {
  return [zipf = Zipf(20000)](Rng& rng, std::uint64_t) { return Chain{zipf.Draw(rng)}; };
}

double RatioOf(EvictionPolicyKind kind, const Workload& workload,
               std::uint32_t capacity = kCapacity) {
  PolicyReplay replay(MakePolicy(kind, 1), {.capacity = capacity});
  Rng rng(7);
  while (replay.counts().asked < kAsked) {
    replay.Serve(workload(rng, replay.counts().asked));
  }
  EXPECT_EQ(replay.counts().refused, 0U);
  EXPECT_LE(replay.used(), capacity);
  return replay.prefix_ratio();
}

struct Case {
  std::string name;
  Workload (*make)();
};

class AgainstLru : public testing::TestWithParam<Case> {};

TEST_P(AgainstLru, HdiIsNowhereMuchWorse) {
  const double lru = RatioOf(EvictionPolicyKind::kLru, GetParam().make());
  const double hdi = RatioOf(EvictionPolicyKind::kHdi, GetParam().make());
  EXPECT_GE(hdi, 0.95 * lru) << "lru " << lru << ", hdi " << hdi;
  RecordProperty("lru", std::to_string(lru));
  RecordProperty("hdi", std::to_string(hdi));
}

INSTANTIATE_TEST_SUITE_P(Workloads, AgainstLru,
                         testing::Values(Case{"Scan", Scan},
                                         Case{"HalfScanHalfZipf", HalfScanHalfZipf},
                                         Case{"Zipf", [] { return ZipfDocuments(); }},
                                         Case{"ZipfRedrawn", [] { return ZipfDocuments(40000); }},
                                         Case{"SessionsAtOnce", [] { return Sessions(0); }},
                                         Case{"SessionsSoon", [] { return Sessions(20); }},
                                         Case{"LoopAndSessions", LoopAndSessionsInTurns},
                                         Case{"UniqueTails", DocumentsWithUniqueTails},
                                         Case{"GapTimesTen", GapTimesTenHalfway},
                                         Case{"Singles", SinglesByZipf}),
                         [](const testing::TestParamInfo<Case>& each) { return each.param.name; });

TEST(PolicyReplay, HdiKeepsWhatFitsOfALoop) {
  // Nobody can hit more than what fits, each time round but the first; LRU hits nothing.
  const double lru = RatioOf(EvictionPolicyKind::kLru, Loop(1.2));
  const double hdi = RatioOf(EvictionPolicyKind::kHdi, Loop(1.2));
  EXPECT_LT(lru, 0.01);
  const double rounds = kAsked / (1.2 * kCapacity);
  EXPECT_GE(hdi, 0.98 * (1 / 1.2) * (rounds - 1) / rounds);
}

// Goal: the promises hold after every operation, under leases, on one segment or several: nothing
// stays behind a hole unless a put had to be refused otherwise, and none is while anything may go.
// Method: chains that grow, branch and return, blocks that are leased without those before them,
// over many seeds; all state checked each time.
class Promises : public testing::TestWithParam<EvictionPolicyKind> {};

TEST_P(Promises, HoldForAnySeed) {
  std::uint64_t left_behind = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    const auto capacity = static_cast<std::uint32_t>(rng.Between(20, 300));
    const bool leases = rng.Chance(1, 2);
    const bool single_reads = leases && rng.Chance(1, 2);
    PolicyReplay replay(std::make_unique<CheckedPolicy>(MakePolicy(GetParam(), seed)),
                        {.capacity = capacity,
                         .lease_ns = leases ? 1000 : 0,
                         .segments = static_cast<std::uint32_t>(rng.Between(1, 5))});
    std::vector<Chain> known{{}};
    std::int64_t now = 0;
    for (int round = 0; round < 150; ++round) {
      Chain chain = known[rng.Uniform(known.size())];
      chain.resize(rng.Uniform(chain.size() + 1));
      for (std::uint64_t grown = rng.Uniform(12); grown > 0; --grown) {
        chain.push_back(rng.Uniform(4000));
      }
      known.push_back(chain);
      now += static_cast<std::int64_t>(rng.Uniform(leases ? 2000 : 2));
      replay.Serve(chain, now);
      if (single_reads && !chain.empty()) {
        replay.Read(chain.back(), now + 1500);  // Longer than those before it.
      }
      ASSERT_EQ(replay.policy().CheckInvariants(), "") << "round " << round;
      ASSERT_LE(replay.used(), capacity);
      if (GetParam() == EvictionPolicyKind::kHdi && !single_reads) {
        ASSERT_EQ(replay.counts().left_behind, 0U);
      }
      if (!leases) {
        ASSERT_EQ(replay.counts().refused, 0U);
      }
    }
    left_behind += replay.counts().left_behind;
    refused += replay.counts().refused;
  }
  EXPECT_GT(left_behind, 0U);
  EXPECT_GT(refused, 0U);
}

INSTANTIATE_TEST_SUITE_P(Policies, Promises,
                         testing::Values(EvictionPolicyKind::kHdi, EvictionPolicyKind::kLru),
                         [](const testing::TestParamInfo<EvictionPolicyKind>& each) {
                           return each.param == EvictionPolicyKind::kHdi ? "Hdi" : "Lru";
                         });

TEST(PolicyReplay, AScanIsNeverRefusedAndNeverEndsTheLearning) {
  PolicyReplay replay(MakePolicy(EvictionPolicyKind::kHdi, 1), {.capacity = 500});
  for (std::uint64_t number = 0; number < 3000; ++number) {
    replay.Serve(Document(9, number));
  }
  EXPECT_EQ(replay.counts().refused, 0U);
  EXPECT_EQ(replay.used(), 500U);
}

TEST(PolicyReplay, HdiIsTheSameAtAnySpeedAndForAnEqualSeed) {
  std::vector<std::uint64_t> fingerprints;
  for (const std::int64_t step : {0, 1, 1000000000}) {
    PolicyReplay replay(MakePolicy(EvictionPolicyKind::kHdi, 5), {.capacity = 800});
    Workload workload = HalfScanHalfZipf();
    Rng rng(3);
    for (std::int64_t request = 0; request < 3000; ++request) {
      replay.Serve(workload(rng, 0), request * step);
    }
    fingerprints.push_back(replay.fingerprint());
  }
  EXPECT_EQ(fingerprints[0], fingerprints[1]);
  EXPECT_EQ(fingerprints[0], fingerprints[2]);
}

}  // namespace
}  // namespace mooncake::store
