#include "mooncake-store/src/master/eviction/lru.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <set>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

// Everything in one list, oldest first; slow and obviously right.
class NaiveLru {
 public:
  struct Object {
    Slot slot;
    std::vector<Placement> placements;
    PinClass pin;
    bool ready = false;
    std::uint64_t leased_until = 0;
  };

  void Touch(Slot slot, std::uint64_t leased_until) {
    for (auto at = objects_.begin(); at != objects_.end(); ++at) {
      if (at->slot == slot && at->ready) {
        at->leased_until = leased_until;
        objects_.splice(objects_.end(), objects_, at);
        return;
      }
    }
  }
  void ToEnd(Slot slot) {
    const auto at = Find(slot);
    objects_.splice(objects_.end(), objects_, at);
  }
  std::list<Object>::iterator Find(Slot slot) {
    return std::ranges::find(objects_, slot, &Object::slot);
  }
  std::vector<Slot> Pick(const SegmentMask& mask, std::uint64_t bytes, bool soft, std::uint64_t now,
                         Slot keep) {
    std::vector<Slot> out;
    std::uint64_t freed = 0;
    bool kept_may_go = false;
    for (const Object& object : objects_) {
      std::uint64_t here = 0;
      for (const Placement& placement : object.placements) {
        here += mask.Has(placement.segment) ? std::uint64_t{placement.units} * 64 : 0;
      }
      if (freed < bytes && here > 0 && object.ready && object.leased_until <= now &&
          object.pin == (soft ? PinClass::kSoft : PinClass::kNone)) {
        if (object.slot == keep) {
          kept_may_go = true;
          continue;
        }
        out.push_back(object.slot);
        freed += here;
      }
    }
    return out.empty() && kept_may_go ? std::vector<Slot>{keep} : out;
  }

  std::list<Object> objects_;
};

class LeaseGuard final : public SlotGuard {
 public:
  LeaseGuard(NaiveLru& twin, std::uint64_t now) : twin_(twin), now_(now) {}
  bool MayGo(Slot slot) override {
    ++asked;
    return twin_.Find(slot)->leased_until <= now_;
  }
  std::int64_t now_ns() const override { return static_cast<std::int64_t>(now_); }
  std::int64_t BoundUntilNs(Slot slot) override {
    return static_cast<std::int64_t>(twin_.Find(slot)->leased_until);
  }
  int asked = 0;

 private:
  NaiveLru& twin_;
  std::uint64_t now_;
};

// Goal: picks equal those of one naive list, whatever the mixture of lookups, pins, segments and
// leases of one length. Method: many seeds.
TEST(LruPolicy, PicksWhatANaiveListPicksForAnySeed) {
  constexpr std::uint64_t kTtl = 40;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    LruPolicy policy;
    NaiveLru twin;
    std::uint64_t now = 0;
    const auto segments = static_cast<std::uint32_t>(rng.Between(1, 4));
    for (int step = 0; step < 400; ++step) {
      SCOPED_TRACE(testing::Message() << "step=" << step);
      now += rng.Uniform(5);
      const auto slot = static_cast<Slot>(rng.Uniform(60));
      const auto found = twin.Find(slot);
      const bool known = found != twin.objects_.end();
      switch (rng.Uniform(6)) {
        case 0:
        case 1:
          if (!known) {
            NaiveLru::Object object{.slot = slot};
            for (SegmentNumber segment = 0; segment < segments; ++segment) {
              if (object.placements.empty() || rng.Chance(1, 4)) {
                object.placements.push_back(
                    {(segment + slot) % segments, static_cast<std::uint32_t>(rng.Between(1, 9))});
              }
            }
            object.pin = static_cast<PinClass>(rng.Chance(1, 3) ? rng.Uniform(3) : 0);
            policy.OnPut({.slot = slot, .pin = object.pin, .placements = object.placements});
            twin.objects_.push_back(object);
          } else if (!found->ready) {
            policy.OnReady(slot);
            found->ready = true;
            twin.ToEnd(slot);
          }
          break;
        case 2: {
          std::vector<ChainKey> keys;
          for (std::uint64_t count = rng.Between(1, 6); count > 0; --count) {
            keys.push_back({.hash = 0, .slot = static_cast<Slot>(rng.Uniform(70))});
          }
          policy.OnChain({.keys = keys});
          for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
            twin.Touch(key->slot, now + kTtl);
          }
          break;
        }
        case 3:
          policy.OnGone(slot);
          if (known) {
            twin.objects_.erase(found);
          }
          break;
        case 4:
          if (known) {
            const auto pin = static_cast<PinClass>(rng.Uniform(3));
            policy.OnPin(slot, pin);
            if (found->pin != pin) {
              found->pin = pin;
              twin.ToEnd(slot);
            }
          }
          break;
        default: {
          SegmentMask mask;
          for (SegmentNumber segment = 0; segment < segments; ++segment) {
            if (rng.Chance(1, 2)) {
              mask.Add(segment);
            }
          }
          const std::uint64_t bytes = rng.Between(1, 2000);
          const bool soft = rng.Chance(1, 3);
          LeaseGuard guard(twin, now);
          std::vector<Slot> picked{12345};
          policy.Pick({.segments = &mask, .bytes = bytes, .soft_pinned_too = soft, .keep = slot},
                      guard, picked);
          EXPECT_EQ(picked[0], 12345U);
          picked.erase(picked.begin());
          ASSERT_EQ(picked, twin.Pick(mask, bytes, soft, now, slot));
        }
      }
    }
  }
}

// Objects that were put and looked up as one chain of so many, on segment 0, 64 bytes each.
class OneChain {
 public:
  // Each is bound until `until(slot)`.
  template <typename Until>
  OneChain(Slot count, Until until) {
    const std::vector<Placement> here{{0, 1}};
    std::vector<ChainKey> keys;
    for (Slot slot = 0; slot < count; ++slot) {
      policy_.OnPut({.slot = slot, .placements = here});
      policy_.OnReady(slot);
      twin_.objects_.push_back({slot, here, PinClass::kNone, true, until(slot)});
      keys.push_back({.slot = slot});
    }
    policy_.OnChain({.keys = keys});
  }
  std::vector<Slot> Pick(std::uint64_t bytes) {
    SegmentMask mask;
    mask.Add(0);
    std::vector<Slot> picked;
    policy_.Pick({.segments = &mask, .bytes = bytes}, guard_, picked);
    return picked;
  }
  [[nodiscard]] const LeaseGuard& guard() const { return guard_; }

 private:
  LruPolicy policy_;
  NaiveLru twin_;
  LeaseGuard guard_{twin_, 50};
};

TEST(LruPolicy, AStoreFullOfLeasedObjectsIsNotWalked) {
  OneChain chain(1000, [](Slot) { return 100U; });
  EXPECT_TRUE(chain.Pick(64).empty());
  EXPECT_LE(chain.guard().asked, 64);
}

// An object that is being replaced is bound without a lease, for as long as that takes.
TEST(LruPolicy, WhatIsBoundBySomethingElseThanItsLeaseHidesNobody) {
  OneChain chain(10, [](Slot slot) { return slot == 3 ? 50U : 100U; });
  EXPECT_EQ(chain.Pick(640), (std::vector<Slot>{3}));
}

TEST(LruPolicy, KeepsTheHeadOfAChainLongest) {
  OneChain chain(4, [](Slot) { return 0U; });
  EXPECT_EQ(chain.Pick(192), (std::vector<Slot>{3, 2, 1}));
}

}  // namespace
}  // namespace mooncake::store
