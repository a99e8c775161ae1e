#include "mooncake-store/src/master/health.h"

#include <gtest/gtest.h>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

// What health.h promises, looked up in a list of all reports.
class NaiveHealth {
 public:
  void Apply(const HealthEvent& event, const SegmentView& view) {
    std::erase_if(reports_, [&](const Report& report) { return report.until <= event.now; });
    for (const SegmentIdentity& identity : event.segments) {
      const auto& segment = view.by_number[identity.number];
      if (!segment || segment->identity != identity) {
        continue;
      }
      std::erase_if(reports_, [&](const Report& report) {
        return report.segment.number == identity.number &&
               (report.segment != identity || report.client == event.client);
      });
      reports_.push_back({identity, event.client, event.now + SegmentHealth::kHideFor});
    }
  }
  bool Quarantined(const Segment& segment, const SegmentView& view, const ClientMonitor& owners,
                   Instant now) const {
    std::size_t voices = 0;
    for (const Report& report : reports_) {
      if (report.segment == segment.identity && report.until > now) {
        const auto own = std::ranges::count_if(reports_, [&](const Report& other) {
          return other.client == report.client && other.until > now;
        });
        voices += own * 2 <= std::ranges::count(view.readable, 1) ? 1U : 0U;
      }
    }
    const bool silent = owners.SilentFor(segment.owner, now) >= SegmentHealth::kOwnerSilent;
    return voices > 0 && voices + (silent ? 1 : 0) >= SegmentHealth::kQuarantineReports;
  }
  bool Hidden(const Uuid& client, const Segment& segment, const SegmentView& view,
              const ClientMonitor& owners, Instant now) const {
    return Quarantined(segment, view, owners, now) ||
           std::ranges::any_of(reports_, [&](const Report& report) {
             return report.client == client && report.segment == segment.identity &&
                    report.until > now;
           });
  }

 private:
  struct Report {
    SegmentIdentity segment;
    Uuid client;
    Instant until;
  };
  std::vector<Report> reports_;
};

class Cluster {
 public:
  static constexpr std::uint64_t kClients = 6;

  explicit Cluster(std::uint64_t seed) : rng_(seed), table_(counters_, seed) {}

  void Step() {
    now_ += std::chrono::milliseconds(rng_.Uniform(400));
    const std::uint64_t owner = rng_.Uniform(kClients);
    owners_.Apply({.kind = ClientEventKind::kSeen, .client = Client(owner), .now = now_});
    const std::uint64_t id = 1 + rng_.Uniform(8);
    switch (rng_.Uniform(8)) {
      case 0:
        Mount(id, owner);
        break;
      case 1:
        Drop(id);
        break;
      default:
        Report();
    }
    Compare();
  }

  std::size_t quarantines() const { return quarantines_; }

 private:
  static Uuid Client(std::uint64_t number) { return {number + 1, 1}; }

  void Mount(std::uint64_t id, std::uint64_t owner) {
    const auto decision = table_.DecideMount(
        {.id = {id, 1}, .name = std::to_string(id), .size_bytes = 4096}, Client(owner), now_, now_);
    if (decision.event) {
      table_.Apply(*decision.event);
    }
  }
  void Drop(std::uint64_t id) {
    if (const auto identity = table_.FindById({id, 1})) {
      table_.Apply({.kind = SegmentEventKind::kGone, .now = now_, .identity = *identity});
    }
  }
  void Report() {
    table_.Refresh(view_);
    std::vector<SegmentIdentity> segments;
    for (std::uint64_t count = 1 + rng_.Uniform(3); count > 0 && !view_->by_number.empty();
         --count) {
      const auto& segment = view_->by_number[rng_.Uniform(view_->by_number.size())];
      if (segment) {
        segments.push_back(segment->identity);
      }
    }
    if (!segments.empty() && rng_.Uniform(8) == 0) {
      segments[0].incarnation ^= 2U;  // Of an earlier mount.
    }
    const HealthEvent event{
        .client = Client(rng_.Uniform(kClients)), .segments = segments, .now = now_};
    health_.Apply(event, *view_);
    naive_.Apply(event, *view_);
  }
  void Compare() {
    table_.Refresh(view_);
    for (std::uint64_t client = 0; client < kClients; ++client) {
      std::vector<std::uint8_t> readable = view_->readable;
      health_.Hide(Client(client), *view_, owners_, now_, readable);
      for (const auto& segment : view_->by_number) {
        if (segment) {
          EXPECT_EQ(readable[segment->identity.number] == 0,
                    naive_.Hidden(Client(client), *segment, *view_, owners_, now_));
        }
      }
    }
    for (const auto& segment : view_->by_number) {
      if (segment) {
        const bool quarantined = naive_.Quarantined(*segment, *view_, owners_, now_);
        EXPECT_EQ(health_.Quarantined(*segment, *view_, owners_, now_), quarantined);
        quarantines_ += quarantined ? 1 : 0;
      }
    }
  }

  Rng rng_;
  MasterCounters counters_;
  SegmentTable table_;
  ClientMonitor owners_{std::chrono::seconds(10)};
  SegmentHealth health_;
  NaiveHealth naive_;
  std::shared_ptr<const SegmentView> view_;
  Instant now_;
  std::size_t quarantines_ = 0;
};

// Goal: the counts that are kept up as reports come and go say what counting anew would. Method:
// random mounts, reports, pings and time, and the same questions to a list of all reports.
TEST(SegmentHealth, AgreesWithCountingAnew) {
  std::size_t quarantines = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Cluster cluster(seed);
    for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) {
      cluster.Step();
    }
    quarantines += cluster.quarantines();
  }
  EXPECT_GT(quarantines, 1000U);  // What is compared does happen.
}

// The longest silent is known without a look at the others, whatever the order of what is heard.
TEST(ClientMonitor, KnowsWhoIsSilent) {
  ClientMonitor clients{std::chrono::seconds(10)};
  const Instant start{};
  const auto seen = [&](std::uint64_t id, int second) {
    clients.Apply({.kind = ClientEventKind::kSeen,
                   .client = {id, 1},
                   .now = start + std::chrono::seconds(second)});
  };
  EXPECT_FALSE(clients.AnySilentFor(std::chrono::seconds(1), start));
  seen(3, 0);
  seen(1, 0);
  seen(2, 1);
  seen(3, 5);
  const Instant at = start + std::chrono::seconds(11);
  EXPECT_EQ(clients.Silent(at), (std::vector<Uuid>{{1, 1}, {2, 1}}));
  EXPECT_TRUE(clients.AnySilentFor(std::chrono::seconds(11), at));
  EXPECT_FALSE(clients.AnySilentFor(std::chrono::seconds(12), at));
  clients.Apply({.kind = ClientEventKind::kLost, .client = {1, 1}, .now = at});
  EXPECT_FALSE(clients.AnySilentFor(std::chrono::seconds(11), at));
  EXPECT_EQ(clients.SilentFor({3, 1}, at), std::chrono::seconds(6));
  EXPECT_EQ(clients.SilentFor({1, 1}, at), Duration::max());
  EXPECT_EQ(clients.size(), 2U);
}

}  // namespace
}  // namespace mooncake::store
