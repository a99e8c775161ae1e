// Random histories of a whole master: space and objects agree at every step, and the events that it
// emitted rebuild it.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/eviction/checked_policy.h"
#include "mooncake-store/src/master/master_test_util.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;

// Keeps each event, with all that it only points to, as something to replay.
class EventLog final : public EventSink {
 public:
  void OnObject(const ObjectEvent& event) override {
    auto& key = strings_.emplace_back(event.key);
    auto& group = strings_.emplace_back(event.group);
    auto& extents = extents_.emplace_back(event.extents.begin(), event.extents.end());
    ObjectEvent copy = event;
    copy.key = key;
    copy.group = group;
    copy.extents = extents;
    entries_.emplace_back([copy](Master& master) { master.Replay(copy); });
  }
  void OnSegment(const SegmentEvent& event) override {
    entries_.emplace_back([event](Master& master) { master.Replay(event); });
  }
  void OnClient(const ClientEvent& event) override {
    entries_.emplace_back([event](Master& master) { master.Replay(event); });
  }
  void OnHealth(const HealthEvent& event) override {
    std::vector<SegmentIdentity> segments(event.segments.begin(), event.segments.end());
    entries_.emplace_back([event, segments](Master& master) {
      HealthEvent copy = event;
      copy.segments = segments;
      master.Replay(copy);
    });
  }
  void OnRecency(const RecencyEvent& event) override {
    const std::vector<ChainKey> keys(event.chain.keys.begin(), event.chain.keys.end());
    const std::vector<ChainKey> ready(event.ready.begin(), event.ready.end());
    const std::vector<EvictionHub::Put> puts(event.puts.begin(), event.puts.end());
    const std::vector<Placement> placements(event.placements.begin(), event.placements.end());
    entries_.emplace_back([=](Master& master) {
      RecencyEvent copy = event;
      copy.chain.keys = keys;
      copy.ready = ready;
      copy.puts = puts;
      copy.placements = placements;
      master.Replay(copy);
    });
  }
  void OnRested(Instant now) override {
    entries_.emplace_back([now](Master& master) { master.ReplayRested(now); });
  }

  void ReplayInto(Master& master) const {
    for (const auto& entry : entries_) {
      entry(master);
    }
  }

 private:
  std::deque<std::string> strings_;
  std::deque<std::vector<PlacedExtent>> extents_;
  std::vector<std::function<void(Master&)>> entries_;
};

// A client that does anything at any time, and what must hold whatever it does.
class History {
 public:
  History(std::uint64_t seed, EvictionPolicyKind policy, EventSink* sink)
      : rng_(seed),
        options_{.eviction_ratio = 0.05 * static_cast<double>(rng_.Uniform(3)),
                 .allocation_strategy = static_cast<AllocationStrategy>(rng_.Uniform(3)),
                 .shard_count = 1U << rng_.Between(1, 4),
                 .seed = seed},
        test(options_, sink, std::make_unique<CheckedPolicy>(MakePolicy(policy, seed))) {}

  [[nodiscard]] const MasterOptions& options() const { return options_; }

  void Step() {
    test.Advance(milliseconds(rng_.Uniform(rng_.Chance(1, 20) ? 4000 : 50)));
    const std::string key = "key" + std::to_string(rng_.Uniform(60));
    const std::uint64_t client = rng_.Between(1, 4);
    const std::uint64_t size = rng_.Between(1, rng_.Chance(1, 5) ? 30000 : 5000);
    switch (rng_.Uniform(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        Write(key, size, client);
        break;
      case 4:
        (void)test.End(key, client, {.success = rng_.Chance(2, 3)});
        break;
      case 5:
      case 6:
        Read(key, client);
        break;
      case 7:
        (void)test.Exists(key, client);
        break;
      case 8:
        (void)test.Remove(key, rng_.Chance(1, 2));
        break;
      case 9:
        (void)test.Mount(client, 4096 * rng_.Between(1, 12), rng_.Chance(1, 2) ? "h" : "");
        break;
      case 10:
        if (rng_.Chance(1, 4)) {
          (void)test.Unmount(client, rng_.Chance(1, 3) ? 500 : 0);
        }
        break;
      case 11:
        for (std::uint64_t each = 1; each <= 4; ++each) {
          if (rng_.Chance(7, 8)) {
            (void)test.Ping(each);
          }
        }
        break;
      case 12:
        test.ReportFailed(client, {static_cast<SegmentNumber>(rng_.Uniform(4))});
        break;
      case 13:
        if (rng_.Chance(1, 30)) {
          (void)test.RemoveAll(rng_.Chance(1, 2));
        }
        break;
      default:
        (void)test.master.Tick(test.now(), rng_.Between(1, 8));
    }
  }

 private:
  void Write(const std::string& key, std::uint64_t size, std::uint64_t client) {
    ReplicateConfigView config{.replica_num = static_cast<std::uint32_t>(rng_.Between(1, 2)),
                               .with_hard_pin = rng_.Chance(1, 30)};
    if (rng_.Chance(1, 8)) {
      config.soft_pin_action = SoftPinAction::kEnable;
      config.soft_pin_ttl_ms = rng_.Uniform(5000);
    }
    if (rng_.Chance(1, 8)) {
      config.group_ids = {"group"};
    }
    if (test.Start(key, size, client, config, rng_.Chance(1, 3)) == StoreCode::kOk &&
        rng_.Chance(7, 8)) {
      CheckUnread();
      (void)test.End(key, client, {.success = rng_.Chance(9, 10)});
    }
  }

  // What was just given to a writer is nothing that somebody may still read.
  void CheckUnread() {
    for (const Extent& given : test.started.table.extents) {
      for (const auto& [until, read] : leased_) {
        if (until > test.now() && read.segment == given.segment &&
            read.incarnation == given.incarnation) {
          EXPECT_TRUE(given.offset_bytes + given.length_bytes <= read.offset_bytes ||
                      read.offset_bytes + read.length_bytes <= given.offset_bytes)
              << "leased bytes were given to a writer";
        }
      }
    }
  }

  void Read(const std::string& key, std::uint64_t client) {
    const LeaseUse use = rng_.Chance(1, 8) ? LeaseUse::kWhole : LeaseUse::kRead;
    if (test.Get(key, client, use) == StoreCode::kOk) {
      const Instant until = test.now() + std::chrono::milliseconds(test.got.lease_ttl_ms);
      for (const Extent& extent : test.got.table.extents) {
        leased_.emplace_back(until, extent);
      }
    }
  }

  Rng rng_;
  const MasterOptions options_;
  std::vector<std::pair<Instant, Extent>> leased_;

 public:
  TestMaster test;
};

TEST(MasterHistory, SpaceAndObjectsAgreeAndLeasesHoldForAnySeed) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    History history(seed, seed % 2 == 0 ? EvictionPolicyKind::kHdi : EvictionPolicyKind::kLru,
                    nullptr);
    for (int step = 0; step < 500; ++step) {
      history.Step();
      ASSERT_EQ(history.test.master.CheckInvariants(), "") << "step " << step;
      ASSERT_FALSE(testing::Test::HasFailure()) << "step " << step;
    }
  }
}

// Of the segments of a History; mounts it if it is not there.
void KeepOnly(std::uint64_t segment, TestMaster& test) {
  for (std::uint64_t other = 1; other <= 4; ++other) {
    if (other != segment) {
      (void)test.Unmount(other);
    }
  }
  test.Tick();
  (void)test.Mount(segment, 8 * 4096);
}

class EventsRebuild : public testing::TestWithParam<EvictionPolicyKind> {};

TEST_P(EventsRebuild, TheMasterForAnySeed) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    EventLog log;
    History history(seed, GetParam(), &log);
    for (int step = 0; step < 500; ++step) {
      history.Step();
    }
    const Instant now = history.test.now();
    // Its own seed, as any master has: with the same one it would name new segments like old ones.
    MasterOptions options = history.options();
    options.seed += 1;
    TestMaster replayed(options, nullptr, MakePolicy(GetParam(), 1));
    log.ReplayInto(replayed.master);
    ASSERT_EQ(replayed.master.Dump(now), history.test.master.Dump(now));
    ASSERT_EQ(replayed.master.CheckInvariants(), "");
    // The policy too. One segment is left, so that placement, which draws at random, has no choice.
    replayed.Advance(now - replayed.now());
    for (TestMaster* each : {&replayed, &history.test}) {
      KeepOnly(1 + seed % 4, *each);
    }
    for (int number = 0; number < 30; ++number) {
      const std::string key = "fresh" + std::to_string(number);
      ASSERT_EQ(replayed.Put(key, 4096), history.test.Put(key, 4096)) << key;
    }
    ASSERT_EQ(replayed.master.CheckInvariants(), "");
    if (GetParam() == EvictionPolicyKind::kLru) {  // The other draws its victims from a sample.
      EXPECT_EQ(replayed.master.counters().objects, history.test.master.counters().objects);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, EventsRebuild,
                         testing::Values(EvictionPolicyKind::kHdi, EvictionPolicyKind::kLru),
                         [](const testing::TestParamInfo<EvictionPolicyKind>& each) {
                           return each.param == EvictionPolicyKind::kHdi ? "Hdi" : "Lru";
                         });

}  // namespace
}  // namespace mooncake::store
