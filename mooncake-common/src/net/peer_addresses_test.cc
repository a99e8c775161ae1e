#include "mooncake-common/src/net/peer_addresses.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake {
namespace {

Addresses Of(std::initializer_list<const char*> numbers) {
  Addresses addresses;
  for (const char* number : numbers) {
    addresses.push_back(ResolveAddress(number, 4000).value());
  }
  return addresses;
}

// A name server that answers by a script, and fails when it is at its end. Lookups run in threads
// that nobody joins, some of them longer than the test: they share the script.
class NameServer {
 public:
  void Add(Result<Addresses> answer) {
    const MutexLock lock(script_->mutex);
    script_->answers.push_back(std::move(answer));
  }
  NameLookup Lookup() {
    return [script = script_](const std::string&, std::uint16_t) -> Result<Addresses> {
      const MutexLock lock(script->mutex);
      ++script->asked;
      if (script->answers.empty()) {
        return Fail(ErrorCode::kDns, "the name server is down");
      }
      Result<Addresses> answer = std::move(script->answers.front());
      script->answers.pop_front();
      return answer;
    };
  }
  int asked() {
    const MutexLock lock(script_->mutex);
    return script_->asked;
  }

 private:
  struct Script {
    Mutex mutex;
    std::deque<Result<Addresses>> answers MC_GUARDED_BY(mutex);
    int asked MC_GUARDED_BY(mutex) = 0;
  };
  const std::shared_ptr<Script> script_ = std::make_shared<Script>();
};

PeerAddresses::Choice Next(PeerAddresses& peer) { return peer.Next().value().value(); }
std::string Text(const PeerAddresses::Choice& choice) { return choice.address.ToString(); }

// Waits until the answer to a lookup has become the choice: it comes on a thread of its own.
bool AwaitChoice(PeerAddresses& peer, const std::string& text) {
  return WaitUntil([&] { return Text(Next(peer)) == text; });
}

TEST(PeerAddresses, ANumberIsKnownAtOnceAndNeverAskedFor) {
  NameServer names;
  const auto peer = PeerAddresses::Create("127.0.0.1", 4000, names.Lookup());
  for (int i = 0; i < 3; ++i) {
    const auto choice = Next(*peer);
    EXPECT_EQ(Text(choice), "127.0.0.1:4000");
    EXPECT_TRUE(peer->OnFailure(choice)) << "there is no other";
  }
  EXPECT_EQ(peer->Describe(Next(*peer).address), "127.0.0.1:4000");
  EXPECT_EQ(names.asked(), 0);
}

TEST(PeerAddresses, TakeTurnsUntilOneIsReachedAndThenStay) {
  NameServer names;
  names.Add(Of({"10.0.0.1", "10.0.0.2", "10.0.0.3"}));
  const auto peer = PeerAddresses::Create("db", 4000, names.Lookup());
  ASSERT_TRUE(peer->WaitUntilKnown(HangDeadline()));
  const auto first = Next(*peer);
  EXPECT_EQ(peer->Describe(first.address), "db:4000 (10.0.0.1:4000)");
  EXPECT_FALSE(peer->OnFailure(first));
  EXPECT_FALSE(peer->OnFailure(first)) << "told twice, by two that dialled at once";
  const auto second = Next(*peer);
  EXPECT_EQ(Text(second), "10.0.0.2:4000");
  peer->OnSuccess(second);
  EXPECT_EQ(Text(Next(*peer)), "10.0.0.2:4000");
  // From here a round has all three again.
  EXPECT_FALSE(peer->OnFailure(Next(*peer)));
  EXPECT_EQ(Text(Next(*peer)), "10.0.0.3:4000");
  EXPECT_FALSE(peer->OnFailure(Next(*peer)));
  EXPECT_EQ(Text(Next(*peer)), "10.0.0.1:4000");
  EXPECT_EQ(names.asked(), 1) << "somebody may still answer";
  EXPECT_TRUE(peer->OnFailure(Next(*peer)));
}

TEST(PeerAddresses, AreAskedForAnewWhenAllHaveFailed) {
  NameServer names;
  names.Add(Of({"10.0.0.1"}));
  const auto peer = PeerAddresses::Create("pod", 4000, names.Lookup());
  ASSERT_TRUE(peer->WaitUntilKnown(HangDeadline()));
  names.Add(Of({"10.0.0.9"}));
  const auto old = Next(*peer);
  EXPECT_TRUE(peer->OnFailure(old));
  ASSERT_TRUE(AwaitChoice(*peer, "10.0.0.9:4000"));
  EXPECT_TRUE(peer->OnFailure(old)) << "a late word of the old address";
  EXPECT_EQ(Text(Next(*peer)), "10.0.0.9:4000");
  // A name server that is down takes nothing away. Its silence was heard when it is asked once
  // more.
  EXPECT_EQ(names.asked(), 2);
  ASSERT_TRUE(WaitUntil([&] {
    EXPECT_TRUE(peer->OnFailure(Next(*peer)));
    return names.asked() >= 4;
  }));
  EXPECT_EQ(Text(Next(*peer)), "10.0.0.9:4000");
}

TEST(PeerAddresses, AFailedFirstLookupIsToldOnceAndThenTriedAgain) {
  NameServer names;
  const auto peer = PeerAddresses::Create("typo", 4000, names.Lookup());
  const auto unknown = peer->WaitUntilKnown(HangDeadline());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kDns);
  names.Add(Of({"10.0.0.1"}));
  const auto pending = peer->Next();
  ASSERT_TRUE(pending.has_value()) << pending.error().ToString();
  ASSERT_TRUE(peer->WaitUntilKnown(HangDeadline()));
  EXPECT_EQ(Text(Next(*peer)), "10.0.0.1:4000");
  EXPECT_EQ(names.asked(), 2);
}

TEST(PeerAddresses, NobodyWaitsForASlowNameServer) {
  const auto answer = std::make_shared<Event>();
  const auto peer = PeerAddresses::Create(
      "slow", 4000, [answer](const std::string&, std::uint16_t) -> Result<Addresses> {
        (void)answer->Wait(HangDeadline());
        return Of({"10.0.0.1"});
      });
  EXPECT_FALSE(peer->Next().value().has_value());
  EXPECT_EQ(peer->WaitUntilKnown(Instant{}).error().code, ErrorCode::kTimeout);
  answer->Notify();
  ASSERT_TRUE(peer->WaitUntilKnown(HangDeadline()));
  EXPECT_EQ(Text(Next(*peer)), "10.0.0.1:4000");
}

}  // namespace
}  // namespace mooncake
