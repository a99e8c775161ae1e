#include "mooncake-store/src/master/eviction/hdi/hazards.h"

#include <cmath>
#include <limits>

namespace mooncake::store {

namespace {

// What a group, and a class, weighs against what it leans on: this many hits.
constexpr double kGroupPrior = 2;
constexpr double kClassPrior = 16;

// In ticks; the last bucket ends here for the walk over horizons.
double UpperEnd(std::size_t bucket) { return std::ldexp(1.0, static_cast<int>(bucket)); }
double LowerEnd(std::size_t bucket) { return bucket == 0 ? 0 : UpperEnd(bucket - 1); }
// In the logarithm, but for the first.
double Middle(std::size_t bucket) {
  return bucket == 0 ? 0.5 : std::exp2(static_cast<double>(bucket) - 0.5);
}

// Ticks that a bucket lasts, from its beginning and from its middle.
struct Widths {
  Widths() {
    for (std::size_t bucket = 0; bucket < kAgeBuckets; ++bucket) {
      whole[bucket] = UpperEnd(bucket) - LowerEnd(bucket);
      half[bucket] = UpperEnd(bucket) - Middle(bucket);
    }
  }
  std::array<double, kAgeBuckets> whole{};
  std::array<double, kAgeBuckets> half{};
};

// The share that survives, and the time held until hit or end, of a stretch with one hazard.
struct Stretch {
  Stretch(double hazard, double ticks)
      : survives(std::exp(-hazard * ticks)), held((1 - survives) / hazard) {}
  double survives;
  double held;
};

}  // namespace

void Hazards::AddWait(std::uint8_t cls, unsigned weight, std::uint32_t from_age,
                      std::uint32_t to_age) {
  std::size_t bucket = BucketOf(from_age);
  const std::size_t last = BucketOf(to_age);
  std::uint32_t from = from_age;
  for (; bucket < last; ++bucket) {
    const std::uint32_t end = std::uint32_t{1} << bucket;
    waits_[cls][bucket] += static_cast<double>(weight) * (end - from);
    from = end;
  }
  waits_[cls][last] += static_cast<double>(weight) * (to_age - from);
}

void Hazards::AddHit(std::uint8_t cls, unsigned weight, std::uint32_t age) {
  hits_[cls][BucketOf(age)] += weight;
}

void Hazards::Forget(double share) {
  for (auto* table : {&hits_, &waits_}) {
    for (ByAge<double>& ages : *table) {
      for (double& value : ages) {
        value *= share;
      }
    }
  }
}

void Hazards::Fit() {
  static const Widths widths;
  ByAge<double> all_hits{};
  ByAge<double> all_waits{};
  std::array<ByAge<double>, kReuseGroups> group_hits{};
  std::array<ByAge<double>, kReuseGroups> group_waits{};
  for (std::size_t cls = 0; cls < kReuseClasses; ++cls) {
    const std::size_t group = GroupOfClass(cls);
    for (std::size_t age = 0; age < kAgeBuckets; ++age) {
      all_hits[age] += hits_[cls][age];
      all_waits[age] += waits_[cls][age];
      group_hits[group][age] += hits_[cls][age];
      group_waits[group][age] += waits_[cls][age];
    }
  }
  std::array<ByAge<double>, kReuseGroups> group_hazards{};
  for (std::size_t group = 0; group < kReuseGroups; ++group) {
    for (std::size_t age = 0; age < kAgeBuckets; ++age) {
      // An age that nobody was watched at is held for a poor one: it leans on almost no hits.
      const double all = (all_hits[age] + 0.001) / (all_waits[age] + 1000);
      group_hazards[group][age] =
          (group_hits[group][age] + kGroupPrior) / (group_waits[group][age] + kGroupPrior / all);
    }
  }
  for (std::size_t cls = 0; cls < kReuseClasses; ++cls) {
    const ByAge<double>& of_group = group_hazards[GroupOfClass(cls)];
    ByAge<double> survives{};
    ByAge<double> held{};
    ByAge<double> highest{};  // Hazard, of this age and those above.
    for (std::size_t age = kAgeBuckets; age-- > 0;) {
      const double hazard =
          (hits_[cls][age] + kClassPrior) / (waits_[cls][age] + kClassPrior / of_group[age]);
      const Stretch whole(hazard, widths.whole[age]);
      const Stretch half(hazard, widths.half[age]);
      survives[age] = whole.survives;
      held[age] = whole.held;
      highest[age] = age + 1 < kAgeBuckets ? std::max(hazard, highest[age + 1]) : hazard;
      double alive = half.survives;
      double ticks = half.held;
      double best = hazard;
      // A horizon further off pays only by a stretch of a higher hazard on the way there.
      for (std::size_t end = age + 1; end < kAgeBuckets && highest[end] > best; ++end) {
        ticks += alive * held[end];
        alive *= survives[end];
        best = std::max(best, (1 - alive) / ticks);
      }
      worth_[cls][age] = static_cast<float>(best);
    }
  }
}

float Hazards::Worth(std::uint8_t cls, std::uint32_t age) const {
  const ByAge<float>& worth = worth_[cls];
  if (age == 0) {
    return worth[0];
  }
  // Linear between the middles of buckets, over the logarithm of the age: -1, 0.5, 1.5, …
  const int octave = static_cast<int>(std::bit_width(age)) - 1;
  const float log2 =
      static_cast<float>(octave) + static_cast<float>(age - (std::uint32_t{1} << octave)) /
                                       static_cast<float>(std::uint32_t{1} << octave);
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): it is not negative.
  const auto bucket = static_cast<std::size_t>(log2 + 0.5F);
  if (bucket + 1 >= kAgeBuckets) {
    return worth[kAgeBuckets - 1];
  }
  const float along = bucket == 0 ? (log2 + 1) / 1.5F : log2 + 0.5F - static_cast<float>(bucket);
  return worth[bucket] + along * (worth[bucket + 1] - worth[bucket]);
}

}  // namespace mooncake::store
