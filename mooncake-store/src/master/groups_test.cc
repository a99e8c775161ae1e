#include "mooncake-store/src/master/groups.h"

#include <gmock/gmock.h>

#include <limits>

namespace mooncake::store {
namespace {

using testing::ElementsAre;

TEST(GroupTable, LeavesTheLivingTheirNumbersWhenNumbersComeAgain) {
  GroupTable groups(std::numeric_limits<GroupNumber>::max() - 1);
  const GroupNumber last = groups.Join(0, "last", 1);
  EXPECT_EQ(last, std::numeric_limits<GroupNumber>::max());
  const GroupNumber first = groups.Join(0, "first", 2);
  EXPECT_NE(first, kNoGroup);

  GroupTable again(last - 1);
  EXPECT_EQ(again.Join(0, "living", 3), last);
  for (Slot slot = 10; slot < 13; ++slot) {
    EXPECT_NE(again.Join(0, std::to_string(slot), slot), last);
  }
  EXPECT_THAT(again.Members(last), ElementsAre(3U));
  EXPECT_EQ(again.NameOf(last), "living");
}

}  // namespace
}  // namespace mooncake::store
