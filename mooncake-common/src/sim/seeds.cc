#include "mooncake-common/src/sim/seeds.h"

#include <algorithm>
#include <cstdlib>

#include "mooncake-common/src/base/text.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MC_SIM_SANITIZED 1
#endif
#endif

namespace mooncake::sim {
namespace {

#if defined(MC_SIM_SANITIZED)
constexpr std::uint64_t kSlowdown = 10;
#else
constexpr std::uint64_t kSlowdown = 1;
#endif

constexpr std::size_t kShownLines = 300;

std::optional<std::uint64_t> NumberFromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::nullopt : ParseInteger<std::uint64_t>(text);
}

}  // namespace

std::string SeedFailure::ToString() const {
  return fmt::format(
      "seed {} broke: {}\nreplay: MC_SIM_SEED={} with the same test filter\nthe end of its "
      "history:\n{}",
      seed, broken, seed, history);
}

std::optional<SeedFailure> RunSeed(std::uint64_t seed, const Scenario& scenario, bool echo) {
  Simulator simulator(seed);
  simulator.Echo(echo);
  std::string broken = scenario(simulator);
  if (broken.empty()) {
    return std::nullopt;
  }
  return SeedFailure{
      .seed = seed, .broken = std::move(broken), .history = simulator.History(kShownLines)};
}

std::optional<SeedFailure> RunSeeds(std::uint64_t seeds, const Scenario& scenario) {
  if (const auto only = NumberFromEnvironment("MC_SIM_SEED")) {
    return RunSeed(*only, scenario, /*echo=*/true);
  }
  const std::uint64_t count =
      NumberFromEnvironment("MC_SIM_SEEDS").value_or(std::max<std::uint64_t>(1, seeds / kSlowdown));
  const std::uint64_t first = NumberFromEnvironment("MC_SIM_FIRST").value_or(0);
  for (std::uint64_t seed = first; seed - first < count; ++seed) {
    if (auto failure = RunSeed(seed, scenario)) {
      return failure;
    }
  }
  return std::nullopt;
}

}  // namespace mooncake::sim
