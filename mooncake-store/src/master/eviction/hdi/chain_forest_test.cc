#include "mooncake-store/src/master/eviction/hdi/chain_forest.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "mooncake-common/src/base/random.h"

namespace mooncake::store {
namespace {

// Objects that point at each other by number, and no number is used twice; slow and obviously
// right.
class Twin {
 public:
  struct Object {
    int number = 0;
    int parent = -1;  // It may be gone.
    bool ready = false;
    PinClass pin = PinClass::kNone;
    std::set<SegmentNumber> segments;
    std::int64_t until = 0;
    bool resting = false;
  };

  [[nodiscard]] const Object* ParentOf(const Object& object) const {
    for (const auto& [slot, other] : objects) {
      if (other.number == object.parent) {
        return &other;
      }
    }
    return nullptr;
  }
  [[nodiscard]] bool IsEnd(const Object& object) const {
    return object.ready && object.pin != PinClass::kHard &&
           std::ranges::none_of(
               objects, [&](const auto& each) { return each.second.parent == object.number; });
  }
  [[nodiscard]] bool HangsOn(const Object& object, const Object& above) const {
    for (const Object* at = &object; at != nullptr; at = ParentOf(*at)) {
      if (at == &above) {
        return true;
      }
    }
    return false;
  }

  std::map<Slot, Object> objects;
  int last_number = 0;
};

void Compare(ChainForest& forest, Twin& twin, std::size_t segments) {
  ASSERT_EQ(forest.CheckInvariants(), "");
  ASSERT_EQ(forest.size(), twin.objects.size());
  for (std::size_t kind = 0; kind < ChainForest::kPinKinds; ++kind) {
    for (SegmentNumber segment = 0; segment < segments; ++segment) {
      std::set<Slot> wanted;
      for (auto& [slot, object] : twin.objects) {
        const bool end = twin.IsEnd(object);
        object.resting = object.resting && end;
        if (end && !object.resting && object.segments.contains(segment) &&
            (object.pin == PinClass::kSoft) == (kind == 1)) {
          wanted.insert(slot);
        }
      }
      const auto listed = forest.Ends(segment, kind);
      ASSERT_EQ(std::set<Slot>(listed.begin(), listed.end()), wanted);
    }
  }
  for (const auto& [slot, object] : twin.objects) {
    ASSERT_EQ(forest.HasParent(forest.At(slot)), twin.ParentOf(object) != nullptr) << slot;
  }
}

// Goal: ends, parents and places are those of the twin after every operation, though slots are used
// again while orphans still name them. Method: few slots, many seeds.
TEST(ChainForest, IsWhatItsTwinIsForAnySeed) {
  constexpr std::size_t kSegments = 3;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    ChainForest forest;
    Twin twin;
    std::int64_t now = 0;
    for (int step = 0; step < 200; ++step) {
      SCOPED_TRACE(testing::Message() << "step=" << step);
      const auto slot = static_cast<Slot>(rng.Uniform(25));
      const auto other = static_cast<Slot>(rng.Uniform(25));
      const auto found = twin.objects.find(slot);
      now += static_cast<std::int64_t>(rng.Uniform(3));
      if (found == twin.objects.end()) {
        Twin::Object object{.number = ++twin.last_number};
        std::vector<Placement> placements;
        for (SegmentNumber segment = 0; segment < kSegments; ++segment) {
          if (rng.Chance(1, 3) || (segment + 1 == kSegments && placements.empty())) {
            placements.push_back({segment, 1});
            object.segments.insert(segment);
          }
        }
        if (const auto above = twin.objects.find(other); above != twin.objects.end()) {
          object.parent = above->second.number;
        }
        object.pin = rng.Chance(1, 4) ? PinClass::kSoft : PinClass::kNone;
        forest.Add({.slot = slot, .parent = other, .pin = object.pin, .placements = placements});
        twin.objects[slot] = object;
      } else {
        Twin::Object& object = found->second;
        const bool listed = twin.IsEnd(object) && !object.resting;
        switch (rng.Uniform(8)) {
          case 0:
          case 1:
            forest.SetReady(slot);
            object.ready = true;
            break;
          case 2: {
            const Twin::Object* parent = twin.ParentOf(object);
            const Slot freed = forest.Remove(slot);
            const int number = parent == nullptr ? -1 : parent->number;
            twin.objects.erase(found);
            if (freed != kNoSlot) {
              EXPECT_EQ(twin.objects.at(freed).number, number);
              EXPECT_TRUE(twin.IsEnd(twin.objects.at(freed)));
            }
            break;
          }
          case 3: {
            object.pin = static_cast<PinClass>(rng.Uniform(3));
            forest.SetPin(slot, object.pin);
            break;
          }
          case 4:
            if (twin.objects.contains(other) && twin.ParentOf(object) == nullptr) {
              Slot root = kNoSlot;
              forest.Adopt(slot, other, root);
              if (!twin.HangsOn(twin.objects[other], object)) {
                object.parent = twin.objects[other].number;
              }
            }
            break;
          case 5:
            if (listed) {
              object.until = now + static_cast<std::int64_t>(rng.Between(1, 40));
              object.resting = true;
              forest.Rest(slot, object.until);
            } else {
              object.until =
                  std::max(object.until, now + static_cast<std::int64_t>(rng.Uniform(40)));
            }
            break;
          case 6: {
            const Slot first =
                forest.WakeRested(now, [&](Slot asked) { return twin.objects.at(asked).until; });
            std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
            for (auto& [each, state] : twin.objects) {
              if (state.resting && state.until <= now) {
                state.resting = false;
              } else if (state.resting) {
                earliest = std::min(earliest, state.until);
              }
            }
            if (first != kNoSlot) {
              EXPECT_EQ(twin.objects.at(first).until, earliest);
            } else {
              EXPECT_EQ(earliest, std::numeric_limits<std::int64_t>::max());
            }
            break;
          }
          default:
            if (listed) {
              // Up the chain as far as it goes, and back.
              std::vector<Slot> taken;
              for (Slot next = slot; next != kNoSlot;) {
                taken.push_back(next);
                next = forest.Take(next);
              }
              while (!taken.empty()) {
                const Slot back = taken.back();
                taken.pop_back();
                forest.Undo(back);
                if (!taken.empty()) {
                  twin.objects.at(back).resting = false;
                }
              }
            }
        }
      }
      Compare(forest, twin, kSegments);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

TEST(ChainForest, AChainIsFoundAgainAfterAHole) {
  ChainForest forest;
  const Placement placement{0, 1};
  for (Slot slot = 0; slot < 4; ++slot) {
    forest.Add({.slot = slot,
                .parent = slot == 0 ? kNoSlot : slot - 1,
                .placements = std::span(&placement, 1)});
    forest.SetReady(slot);
  }
  EXPECT_EQ(forest.Remove(1), 0U);
  EXPECT_FALSE(forest.HasParent(forest.At(2)));
  // The slot belongs to a stranger now, and 2 does not hang on it.
  forest.Add({.slot = 1, .placements = std::span(&placement, 1)});
  forest.SetReady(1);
  EXPECT_FALSE(forest.HasParent(forest.At(2)));
  forest.Add({.slot = 9, .parent = 0, .placements = std::span(&placement, 1)});
  forest.SetReady(9);
  Slot root = kNoSlot;
  forest.Adopt(2, 9, root);
  EXPECT_EQ(root, 0U);
  const auto ends = forest.Ends(0, 0);
  EXPECT_EQ(std::set<Slot>(ends.begin(), ends.end()), (std::set<Slot>{1, 3}));
}

}  // namespace
}  // namespace mooncake::store
