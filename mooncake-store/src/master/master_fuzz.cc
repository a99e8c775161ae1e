// Any bytes as requests that decode: the master lives, its books balance, and its answers decode.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "mooncake-store/src/master/eviction/policies.h"
#include "mooncake-store/src/master/hostile_requests.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mooncake::store;  // NOLINT(google-build-using-namespace)
  if (size == 0) {
    return 0;
  }
  Master master({.shard_count = 2},
                MakePolicy(data[0] % 2 == 0 ? EvictionPolicyKind::kHdi : EvictionPolicyKind::kLru,
                           /*seed=*/1));
  std::size_t at = 1;
  HostileRequests requests(master, [&] {
    // Two bytes choose; a number of its own takes what they give.
    std::uint64_t number = 0;
    const std::size_t bytes = std::min(sizeof(std::uint16_t), size - at);
    std::memcpy(&number, data + at, bytes);
    at += bytes;
    return number;
  });
  while (at < size) {
    requests.Send();
  }
  MC_CHECK(master.CheckInvariants().empty());
  return 0;
}
