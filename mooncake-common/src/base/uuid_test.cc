#include "mooncake-common/src/base/uuid.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <unordered_set>

#include "mooncake-common/src/base/random.h"

namespace mooncake {
namespace {

TEST(Uuid, RoundTripsThroughItsText) {
  const Uuid largest{.first = UINT64_MAX, .second = UINT64_MAX};
  EXPECT_EQ(largest.ToString(), "18446744073709551615-18446744073709551615");
  EXPECT_EQ(ParseUuid(largest.ToString()), largest);
  EXPECT_EQ(ParseUuid("0-7"), (Uuid{.first = 0, .second = 7}));
}

TEST(Uuid, RejectsOtherTextAndQuotesIt) {
  for (const char* bad :
       {"", "-", "1", "1-", "-1", "1-2-3", "1--2", " 1-2", "0x1-2", "18446744073709551616-0"}) {
    const auto parsed = ParseUuid(bad);
    ASSERT_FALSE(parsed.has_value()) << bad;
    EXPECT_NE(parsed.error().message.find(bad), std::string::npos) << parsed.error().message;
  }
}

TEST(Uuid, IsGeneratedFromTheGivenRngWithoutRepeats) {
  Rng rng(3);
  Rng same(3);
  std::unordered_set<Uuid> seen;
  for (int i = 0; i < 1000; ++i) {
    const Uuid uuid = GenerateUuid(rng);
    EXPECT_EQ(uuid, GenerateUuid(same));
    EXPECT_FALSE(uuid.IsZero());
    EXPECT_TRUE(seen.insert(uuid).second);
  }
}

}  // namespace
}  // namespace mooncake
