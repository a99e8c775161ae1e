#include "mooncake-common/src/base/random.h"

#include <sys/random.h>

#include <bit>

#include "mooncake-common/src/base/mix.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake {

Rng::Rng(std::uint64_t seed) : state_{} {
  for (std::uint64_t& word : state_) {
    word = Mix64(seed += kMixStep);
  }
}

Rng Rng::FromOs() {
  std::array<std::uint64_t, 4> state{};
  // Up to 256 bytes come whole once the kernel's pool is ready, and it is before init runs.
  MC_CHECK(getrandom(state.data(), sizeof state, 0) == static_cast<ssize_t>(sizeof state));
  state[0] |= 1;
  return Rng(state);
}

std::uint64_t Rng::Next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Rng::Uniform(std::uint64_t bound) {
  MC_CHECK(bound != 0);
  // Lemire's multiplication; the few low products that would favour small values are drawn again.
  const std::uint64_t unfair = (0 - bound) % bound;
  while (true) {
    const unsigned __int128 product = static_cast<unsigned __int128>(Next()) * bound;
    if (static_cast<std::uint64_t>(product) >= unfair) {
      return static_cast<std::uint64_t>(product >> 64);
    }
  }
}

std::uint64_t Rng::Between(std::uint64_t low, std::uint64_t high) {
  MC_CHECK(low <= high);
  const std::uint64_t span = high - low;
  return span == UINT64_MAX ? Next() : low + Uniform(span + 1);
}

bool Rng::Chance(std::uint64_t times, std::uint64_t of) { return Uniform(of) < times; }

double Rng::UnitInterval() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

}  // namespace mooncake
