// policy_replay POLICIES CAPACITIES [SEED]: replays a trace against eviction policies, such as
// "policy_replay hdi,lru 1000,3000". Standard input is the trace (trace.h). Prints a line for each
// policy and capacity: both, the share of blocks that were prefix hits and that were present at
// all, puts refused, microseconds a block, and a number that tells histories apart.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-store/src/master/eviction/policies.h"
#include "mooncake-store/src/master/eviction/policy_replay.h"
#include "mooncake-store/src/master/eviction/trace.h"

namespace {

using mooncake::store::Chain;
using mooncake::store::EvictionPolicyFrom;
using mooncake::store::MakePolicy;
using mooncake::store::PolicyReplay;
using mooncake::store::ReadTrace;

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    parts.push_back(part);
  }
  return parts;
}

int Fail(const std::string& why) {
  std::fprintf(stderr, "policy_replay: %s\nusage: policy_replay POLICIES CAPACITIES [SEED]\n",
               why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    return Fail("two or three arguments");
  }
  const std::uint64_t seed = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const auto chains = ReadTrace(std::cin);
  if (!chains) {
    return Fail(chains.error().message);
  }
  const mooncake::SteadyClock clock;
  for (const std::string& name : Split(argv[1])) {
    const auto kind = EvictionPolicyFrom(name);
    if (!kind) {
      return Fail("no policy '" + name + "'");
    }
    for (const std::string& text : Split(argv[2])) {
      const auto capacity = static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
      if (capacity == 0) {
        return Fail("no capacity '" + text + "'");
      }
      PolicyReplay replay(MakePolicy(*kind, seed), {.capacity = capacity});
      const mooncake::Instant start = clock.Now();
      for (const Chain& chain : *chains) {
        replay.Serve(chain);
      }
      const std::chrono::duration<double, std::micro> took = clock.Now() - start;
      const PolicyReplay::Counts& counts = replay.counts();
      const double asked = static_cast<double>(counts.asked > 0 ? counts.asked : 1);
      std::printf("%s %u %.6f %.6f %llu %.3f %016llx\n", name.c_str(), capacity,
                  replay.prefix_ratio(), static_cast<double>(counts.present) / asked,
                  static_cast<unsigned long long>(counts.refused), took.count() / asked,
                  static_cast<unsigned long long>(replay.fingerprint()));
      std::fflush(stdout);
    }
  }
  return 0;
}
