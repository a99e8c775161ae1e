// What is remembered of a block's uses, and the classes and ages by which re-use is learned.
//
// Time is counted in ticks of 64 blocks asked for, so that a fast replay and a slow day are alike.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace mooncake::store {

inline constexpr std::uint32_t kBlocksPerTick = 64;

struct Reuse {
  std::uint8_t count = 1;  // Times asked for, at most 255.
  std::uint8_t cls = 0;    // FirstUseClass() or ReuseClass().
  std::int8_t gap = 0;     // Smoothed time between uses: 4 * log2 of ticks.
};

// ---- Ages ----

// Bucket 0 is below one tick, bucket k from 2^(k-1) to below 2^k, the last one open.
inline constexpr std::size_t kAgeBuckets = 21;

[[nodiscard]] constexpr std::size_t BucketOf(std::uint32_t ticks) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(ticks)), kAgeBuckets - 1);
}

// 4 * log2(ticks), rounded down; of less than a tick that of 1/64.
[[nodiscard]] constexpr int QuarterOctaves(std::uint32_t ticks) {
  if (ticks == 0) {
    return -24;
  }
  const int octave = static_cast<int>(std::bit_width(ticks)) - 1;
  const std::uint32_t scaled = ticks << (31 - octave);  // 2^31 to below 2^32.
  int quarter = 0;
  for (const std::uint32_t step : {2553802833U, 3037000500U, 3611622603U}) {  // 2^31.25, 2^31.5, …
    quarter += static_cast<int>(scaled >= step);
  }
  return 4 * octave + quarter;
}

// ---- Classes ----

inline constexpr std::size_t kFirstUseClasses = 16;
inline constexpr std::size_t kLastOfChainClass = 16;  // Asked for once, at the end of its chain.
inline constexpr std::size_t kGapBins = 13;
inline constexpr std::size_t kReuseClasses = 17 + 5 * kGapBins;
// Classes of one group are alike but for the details: new, last of chain, used 2, 3, 4, 5 to 7, 8
// times and more.
inline constexpr std::size_t kReuseGroups = 7;

[[nodiscard]] constexpr std::size_t GroupOfClass(std::size_t cls) {
  return cls < kFirstUseClasses     ? 0
         : cls == kLastOfChainClass ? 1
                                    : 2 + (cls - kLastOfChainClass - 1) / kGapBins;
}

// Of a block asked for the first time, in a chain of `length` whose first `known` blocks were
// known.
[[nodiscard]] constexpr std::uint8_t FirstUseClass(std::uint32_t known, std::uint32_t length,
                                                   bool last_of_chain) {
  if (last_of_chain) {
    return kLastOfChainClass;
  }
  const std::uint64_t percent = std::uint64_t{known} * 100 / length;
  const unsigned part = percent < 15 ? 0 : percent < 50 ? 1 : percent < 85 ? 2 : 3;
  const unsigned size = length <= 8 ? 0 : length <= 24 ? 1 : length <= 64 ? 2 : 3;
  return static_cast<std::uint8_t>(part + 4 * size);
}

// Of a block asked for `count` times, at least two.
[[nodiscard]] constexpr std::uint8_t ReuseClass(unsigned count, int gap) {
  const unsigned times = count <= 4 ? count - 2 : count <= 7 ? 3 : 4;
  const int bin = std::clamp((gap / 4 + 4) / 2, 0, static_cast<int>(kGapBins) - 1);
  return static_cast<std::uint8_t>(kLastOfChainClass + 1 + kGapBins * times +
                                   static_cast<unsigned>(bin));
}

}  // namespace mooncake::store
