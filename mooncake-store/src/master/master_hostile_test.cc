// Whatever anybody sends, the master lives, its books balance, and its answers decode.
#include <gtest/gtest.h>

#include "mooncake-common/src/base/random.h"
#include "mooncake-store/src/master/eviction/policies.h"
#include "mooncake-store/src/master/hostile_requests.h"

namespace mooncake::store {
namespace {

TEST(HostileRequests, LeaveTheMasterWhole) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    const auto kind = seed % 2 == 0 ? EvictionPolicyKind::kHdi : EvictionPolicyKind::kLru;
    Master master({}, MakePolicy(kind, seed));
    Rng rng(seed);
    HostileRequests requests(master, [&rng] { return rng.Next(); });
    for (int sent = 0; sent < 500; ++sent) {
      requests.Send();
    }
    ASSERT_EQ(master.CheckInvariants(), "");
  }
}

}  // namespace
}  // namespace mooncake::store
