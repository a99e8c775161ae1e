// How likely a block is to be asked for again, learned by class and age, and what it is worth to
// keep it: hits to be expected per tick held.
//
// Two tables by class and age: hits, and ticks waited. Their quotient is the hazard, the chance of
// a hit in the next tick; where a class has seen little it leans on its group, and that on all. The
// worth is the best, over all horizons, of P(hit within it) / E[ticks held]. It may rise with age
// (people pause; loops), which scores of recency and frequency cannot express.
//
// Thread-safety: none; the owner's lock.
// Memory:        34 KiB.
#pragma once

#include <array>
#include <cstdint>

#include "mooncake-store/src/master/eviction/hdi/reuse.h"

namespace mooncake::store {

class Hazards {
 public:
  // `weight` blocks of a class were watched from one age to another without a hit; or hit.
  void AddWait(std::uint8_t cls, unsigned weight, std::uint32_t from_age, std::uint32_t to_age);
  void AddHit(std::uint8_t cls, unsigned weight, std::uint32_t age);

  // So much of both tables stays.
  void Forget(double share);

  // Works the worths out anew: some 10 us.
  void Fit();

  // 0 before the first Fit().
  [[nodiscard]] float Worth(std::uint8_t cls, std::uint32_t age) const;

 private:
  template <typename T>
  using ByAge = std::array<T, kAgeBuckets>;

  std::array<ByAge<double>, kReuseClasses> hits_{};
  std::array<ByAge<double>, kReuseClasses> waits_{};
  std::array<ByAge<float>, kReuseClasses> worth_{};
};

}  // namespace mooncake::store
