#include "mooncake-store/src/client/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mooncake-store/src/client/client_fixture.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Heart {
  ClientFixture fixture;
  HeartbeatOperation operation{fixture.core};

  void Run(Duration time) {
    EXPECT_FALSE(fixture.driver.RunUntil(operation, fixture.driver.now + time));
  }
};

TEST(Heartbeat, PingsOnceASecond) {
  Heart heart;
  heart.Run(milliseconds(2500));
  EXPECT_EQ(heart.fixture.driver.transcript,
            "0 ping view=0\n"
            "1000 ping view=1\n"
            "2000 ping view=1\n");
  EXPECT_TRUE(heart.fixture.core.membership().master_reachable());
}

TEST(Heartbeat, MountsEverythingAgainWhenAsked) {
  Heart heart;
  Membership& membership = heart.fixture.core.membership();
  membership.Want({.id = Uuid{1, 1}, .name = "a"});
  membership.Want({.id = Uuid{2, 2}, .name = "b"});
  membership.Want({.id = Uuid{2, 2}, .name = "c"});
  membership.Want({.id = Uuid{3, 3}, .name = "d"});
  membership.Unwant(Uuid{3, 3});
  heart.fixture.master.status = ClientStatus::kNeedRemount;
  heart.Run(milliseconds(1500));
  EXPECT_EQ(heart.fixture.driver.transcript,
            "0 ping view=0\n"
            "1 remount 2\n"
            "1000 ping view=1\n");
  ASSERT_EQ(heart.fixture.master.remounted.size(), 2U);
  EXPECT_EQ(heart.fixture.master.remounted[1].name, "c");
  EXPECT_EQ(membership.remounts(), 1U);
}

TEST(Heartbeat, ForgetsWhereObjectsLieWhenTheMasterStartsAnew) {
  Heart heart;
  heart.Run(milliseconds(1500));
  DescriptorCache& cache = heart.fixture.core.cache();
  cache.Offer("k", std::make_shared<Location>(), heart.fixture.driver.now + seconds(10),
              cache.TicketFor("k"));
  heart.Run(milliseconds(1000));
  EXPECT_NE(cache.Find("k", heart.fixture.driver.now).location, nullptr);
  heart.fixture.master.view = 2;
  heart.Run(milliseconds(1000));
  EXPECT_EQ(cache.Find("k", heart.fixture.driver.now).location, nullptr);
  EXPECT_EQ(heart.fixture.core.membership().view_version(), 2U);
}

TEST(Heartbeat, TellsThatTheMasterIsAwayAndThatItIsBack) {
  Heart heart;
  heart.Run(milliseconds(500));
  heart.fixture.calls_lost = 2;
  heart.Run(milliseconds(1000));
  EXPECT_FALSE(heart.fixture.core.membership().master_reachable());
  EXPECT_THAT(heart.operation.trouble(), testing::HasSubstr("connection reset"));
  heart.Run(milliseconds(2000));
  EXPECT_TRUE(heart.fixture.core.membership().master_reachable());
  EXPECT_EQ(heart.operation.trouble(), "");
}

TEST(Heartbeat, TellsThatTheMasterWentBeforeItsFirstPing) {
  Heart heart;
  EXPECT_TRUE(heart.fixture.core.membership().master_reachable()) << "set-up heard of it";
  heart.fixture.calls_lost = 1;
  heart.Run(milliseconds(500));
  EXPECT_FALSE(heart.fixture.core.membership().master_reachable());
  heart.Run(milliseconds(1000));
  EXPECT_TRUE(heart.fixture.core.membership().master_reachable());
}

TEST(Heartbeat, RepeatsALostRemountAtItsOwnPace) {
  Heart heart;
  heart.fixture.core.membership().Want({.id = Uuid{1, 1}, .name = "a"});
  heart.fixture.master.status = ClientStatus::kNeedRemount;
  heart.fixture.before_call = [&](int call) {
    if (call == 2) {
      heart.fixture.calls_lost = 1;
    }
  };
  heart.Run(milliseconds(1500));
  EXPECT_EQ(heart.fixture.core.membership().remounts(), 1U);
  EXPECT_EQ(heart.fixture.driver.transcript,
            "0 ping view=0\n"
            "1 remount 1\n"
            "2 no answer: connection reset\n"
            "1000 ping view=1\n"
            "1001 remount 1\n");
}

TEST(Heartbeat, PingsWhileARemountHangs) {
  Heart heart;
  heart.fixture.core.membership().Want({.id = Uuid{1, 1}, .name = "a"});
  heart.fixture.master.status = ClientStatus::kNeedRemount;
  heart.Run(milliseconds(1));
  heart.fixture.driver.call_time = seconds(20);  // Of the remount, which is sent next...
  heart.Run(milliseconds(2));
  heart.fixture.driver.call_time = milliseconds(1);
  heart.Run(milliseconds(2500));
  EXPECT_EQ(heart.fixture.driver.transcript,
            "0 ping view=0\n"
            "1 remount 1\n"
            "1000 ping view=1\n"
            "2000 ping view=1\n");
}

TEST(Heartbeat, UnmountsWhatWasRetractedUntilTheMasterSaysThatItIsGone) {
  Heart heart;
  Membership& membership = heart.fixture.core.membership();
  membership.Want({.id = Uuid{1, 1}, .name = "a"});
  membership.Want({.id = Uuid{2, 2}, .name = "b"});
  membership.Retract(Uuid{1, 1});
  membership.Retract(Uuid{1, 1});
  heart.fixture.before_call = [&](int call) {
    if (call == 2) {
      heart.fixture.calls_lost = 1;  // The first unmount.
    }
  };
  heart.Run(milliseconds(3500));
  EXPECT_THAT(heart.fixture.master.unmounted, testing::ElementsAre(Uuid{1, 1}));
  EXPECT_TRUE(membership.Retracted().empty());
  ASSERT_EQ(membership.Wanted().size(), 1U);
  EXPECT_EQ(membership.Wanted()[0].name, "b");
}

TEST(Heartbeat, EndsWhenStopped) {
  Heart heart;
  heart.Run(milliseconds(100));
  heart.operation.Stop();
  EXPECT_TRUE(heart.fixture.driver.Run(heart.operation));
}

}  // namespace
}  // namespace mooncake::store
