#include "mooncake-store/src/master/eviction/hub.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "mooncake-store/src/master/eviction/lru.h"

namespace mooncake::store {
namespace {

// Writes down what it hears and offers every slot that is ready.
class RecordingPolicy final : public EvictionPolicy {
 public:
  explicit RecordingPolicy(std::string& transcript) : transcript_(transcript) {}
  bool NeedsParents() const override { return true; }
  void OnChain(const ChainEvent& event) override {
    transcript_ += fmt::format("chain {}.{}+{}/{}:", event.client, event.chain_id, event.position,
                               event.total);
    for (const ChainKey& key : event.keys) {
      transcript_ += key.slot == kNoSlot ? fmt::format(" {}", key.hash)
                                         : fmt::format(" {}@{}", key.hash, key.slot);
    }
    transcript_ += '\n';
  }
  void OnPut(const PutEvent& event) override {
    transcript_ += fmt::format("put {}@{} parent {}:", event.hash, event.slot,
                               event.parent == kNoSlot ? -1 : static_cast<int>(event.parent));
    for (const Placement& placement : event.placements) {
      transcript_ += fmt::format(" {}x{}", placement.units, placement.segment);
    }
    transcript_ += '\n';
  }
  void OnReady(Slot slot) override {
    transcript_ += fmt::format("ready {}\n", slot);
    ready_.push_back(slot);
  }
  void OnPin(Slot slot, PinClass pin) override {
    transcript_ += fmt::format("pin {} {}\n", slot, static_cast<int>(pin));
  }
  void OnGone(Slot slot) override {
    transcript_ += fmt::format("gone {}\n", slot);
    std::erase(ready_, slot);
  }
  void Pick(const PickRequest&, SlotGuard& guard, std::vector<Slot>& out) override {
    for (const Slot slot : ready_) {
      if (guard.MayGo(slot)) {
        out.push_back(slot);
      }
    }
  }

 private:
  std::string& transcript_;
  std::vector<Slot> ready_;
};

class HubTest : public testing::Test {
 protected:
  static Instant At(int milliseconds) { return Instant(std::chrono::milliseconds(milliseconds)); }
  void Put(ChainKey key, ChainKey parent = {}) {
    const std::vector<Placement> placements{{3, 2}};
    const std::vector<EvictionHub::Put> puts{
        {.key = key, .parent = parent, .first_placement = 0, .placement_count = 1}};
    hub_.OnPuts(puts, placements);
  }
  void Ready(std::vector<ChainKey> keys) { hub_.OnReady(keys); }
  void Gone(ChainKey key) { hub_.OnGone(std::span(&key, 1)); }
  std::vector<Slot> Pick(int milliseconds) {
    std::vector<Slot> out;
    earliest_ = hub_.Pick({}, At(milliseconds), out);
    return out;
  }

  std::string transcript_;
  std::optional<Instant> earliest_;
  EvictionHub hub_{std::make_unique<RecordingPolicy>(transcript_)};
};

TEST_F(HubTest, TellsThePolicyInOrder) {
  Put({100, 1});
  Put({101, 2}, {100, 1});
  Ready({{100, 1}, {101, 2}});
  const std::vector<ChainKey> keys{{100, 1}, {101, 2}, {102, kNoSlot}};
  hub_.OnChain({.client = 9, .chain_id = 4, .position = 5, .total = 8, .keys = keys}, At(50));
  hub_.OnPin({100, 1}, PinClass::kSoft);
  Gone({101, 2});
  EXPECT_EQ(transcript_, "");
  EXPECT_EQ(Pick(0), std::vector<Slot>{});
  EXPECT_EQ(transcript_,
            "put 100@1 parent -1: 2x3\n"
            "put 101@2 parent 1: 2x3\n"
            "ready 2\nready 1\n"
            "chain 9.4+5/8: 100@1 101@2 102\n"
            "pin 1 1\n"
            "gone 2\n");
}

TEST_F(HubTest, TellsLookupsThatWaitedTogetherApart) {
  const std::vector<ChainKey> first{{100, kNoSlot}, {101, kNoSlot}};
  const std::vector<ChainKey> second{{200, kNoSlot}};
  hub_.OnChain({.client = 9, .chain_id = 4, .position = 0, .total = 2, .keys = first}, At(50));
  hub_.OnChain({.client = 8, .chain_id = 5, .position = 0, .total = 1, .keys = second}, At(50));
  (void)Pick(0);
  EXPECT_EQ(transcript_, "chain 9.4+0/2: 100 101\nchain 8.5+0/1: 200\n");
}

TEST_F(HubTest, GuardsWhatIsLeasedOrBeingWritten) {
  Put({100, 1});
  Put({101, 2});
  Put({102, 3});
  Ready({{100, 1}, {101, 2}});
  const std::vector<ChainKey> keys{{100, 1}};
  hub_.OnChain({.keys = keys}, At(50));
  EXPECT_EQ(Pick(0), std::vector<Slot>{2});
  EXPECT_EQ(earliest_, At(50));
  EXPECT_EQ(Pick(49), std::vector<Slot>{2});
  EXPECT_EQ(Pick(50), (std::vector<Slot>{2, 1}));
  EXPECT_FALSE(earliest_);
  hub_.OnLease({101, 2}, At(70));
  EXPECT_EQ(Pick(60), std::vector<Slot>{1});
}

TEST_F(HubTest, DropsEventsOfASlotThatHasGoneToAnotherObject) {
  Put({100, 1});
  Ready({{100, 1}});
  Gone({100, 1});
  Put({200, 1});
  const std::vector<ChainKey> keys{{100, 1}, {200, 1}};
  hub_.OnChain({.keys = keys}, At(50));
  Ready({{100, 1}});
  hub_.OnPin({100, 1}, PinClass::kHard);
  Gone({100, 1});
  Put({300, 5}, {100, 1});
  EXPECT_EQ(Pick(0), std::vector<Slot>{});
  EXPECT_EQ(transcript_,
            "put 100@1 parent -1: 2x3\nready 1\ngone 1\n"
            "put 200@1 parent -1: 2x3\n"
            "chain 0.0+0/0: 100 200@1\n"
            "put 300@5 parent -1: 2x3\n");
}

TEST_F(HubTest, AnObjectThatWentBeforeItsPutWasToldIsNeverTold) {
  Gone({100, 1});
  Put({200, 1});  // The slot's next owner was told first.
  Put({100, 1});
  Ready({{200, 1}});
  EXPECT_EQ(Pick(0), std::vector<Slot>{1});
  EXPECT_EQ(transcript_, "put 200@1 parent -1: 2x3\nready 1\n");
}

TEST_F(HubTest, ASlotMayBeGivenOnBeforeTheEndOfWhoHadItIsTold) {
  Put({100, 7});
  Put({100, 7});  // The same key came back to its slot.
  Gone({100, 7});
  EXPECT_EQ(hub_.CheckInvariants(1), "");
  Put({200, 7});
  EXPECT_NE(hub_.CheckInvariants(1), "") << "an end is still to come";
  Gone({100, 7});
  EXPECT_EQ(hub_.CheckInvariants(1), "");
  Gone({200, 7});
  EXPECT_EQ(hub_.CheckInvariants(0), "");
  EXPECT_EQ(transcript_,
            "put 100@7 parent -1: 2x3\ngone 7\n"
            "put 100@7 parent -1: 2x3\ngone 7\n"
            "put 200@7 parent -1: 2x3\ngone 7\n");
}

TEST_F(HubTest, AKeyMayEndTwiceBeforeItsPutsAreTold) {
  Gone({100, 7});
  Gone({100, 7});
  Put({100, 7});
  Put({100, 7});
  EXPECT_EQ(hub_.CheckInvariants(0), "");
  EXPECT_EQ(transcript_, "");
}

TEST_F(HubTest, DrainsByItselfOnlyWhenTheRingHasGrown) {
  Put({100, 1});
  hub_.DrainIfGrown();
  EXPECT_EQ(transcript_, "");
  const std::vector<ChainKey> keys(5000, ChainKey{1, kNoSlot});
  hub_.OnChain({.keys = keys}, At(1));
  hub_.DrainIfGrown();
  EXPECT_NE(transcript_, "");
}

// Goal: no lock is missing. Method: threads with slots of their own do everything at once.
TEST(EvictionHub, ThreadsMayDoAllOfIt) {
  EvictionHub hub(std::make_unique<LruPolicy>());
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (Slot base = 0; base < 4; ++base) {
    threads.emplace_back([&hub, base] {
      const std::vector<Placement> placements{{0, 1}};
      SegmentMask mask;
      mask.Add(0);
      for (Slot round = 0; round < 500; ++round) {
        const ChainKey key{round * 8 + base, base + 4 * (round % 16)};
        const std::vector<EvictionHub::Put> puts{
            {.key = key, .first_placement = 0, .placement_count = 1}};
        hub.OnPuts(puts, placements);
        hub.OnReady(std::span(&key, 1));
        hub.OnChain({.keys = std::span(&key, 1)}, Instant(Duration(round)));
        hub.DrainIfGrown();
        if (round % 8 == 0) {
          std::vector<Slot> out;
          (void)hub.Pick({.segments = &mask, .bytes = 200}, Instant(Duration(1000)), out);
        }
        hub.OnGone(std::span(&key, 1));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::vector<Slot> out;
  SegmentMask mask;
  mask.Add(0);
  (void)hub.Pick({.segments = &mask, .bytes = 1U << 30U}, Instant(Duration(1000)), out);
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace mooncake::store
