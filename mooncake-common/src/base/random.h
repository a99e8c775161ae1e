// Our own random numbers: the same sequence from the same seed on every compiler and library, which
// std distributions do not promise.
//
// Thread-safety: none; each owner has its own Rng. Not for secrets.
// Source:        xoshiro256** 1.0 and SplitMix64 (Blackman and Vigna, public domain).
#pragma once

#include <array>
#include <cstdint>

namespace mooncake {

class Rng {
 public:
  // Equal seeds give equal sequences; any value will do.
  explicit Rng(std::uint64_t seed);

  // Seeded with 256 bits from the kernel: for identities and jitter that no test replays. Where a
  // test or the simulator may stand, take an Rng as argument instead.
  [[nodiscard]] static Rng FromOs();

  // 64 random bits.
  [[nodiscard]] std::uint64_t Next();

  // Below `bound`, each value equally likely. `bound` must not be zero.
  [[nodiscard]] std::uint64_t Uniform(std::uint64_t bound);

  // From `low` to `high`, both included. low <= high.
  [[nodiscard]] std::uint64_t Between(std::uint64_t low, std::uint64_t high);

  // True in `times` of `of` cases; always true when times >= of. `of` must not be zero.
  [[nodiscard]] bool Chance(std::uint64_t times, std::uint64_t of);

  // At least 0 and below 1, a multiple of 2^-53.
  [[nodiscard]] double UnitInterval();

 private:
  explicit Rng(const std::array<std::uint64_t, 4>& state) : state_(state) {}

  std::array<std::uint64_t, 4> state_;  // Never all zero.
};

}  // namespace mooncake
