// Spreads the differences between numbers over all bits, as of counters or small numbers that are
// to look like hashes. Not for secrets.
//
// Thread-safety: a pure function.
// Source:        the finisher of SplitMix64 (Steele, Lea and Flood; Vigna, public domain).
#pragma once

#include <cstdint>

namespace mooncake {

// What SplitMix64 adds between two numbers: 2^64 divided by the golden ratio, odd.
inline constexpr std::uint64_t kMixStep = 0x9e3779b97f4a7c15U;

// One to one: different numbers stay different. Mix64(0) is 0.
[[nodiscard]] constexpr std::uint64_t Mix64(std::uint64_t number) {
  number = (number ^ (number >> 30U)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27U)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31U);
}

}  // namespace mooncake
