#include "mooncake-store/src/client/key_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mooncake-store/src/client/client_fixture.h"

namespace mooncake::store {
namespace {

TEST(ExistOperation, AnswersInTheOrderOfTheKeys) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("yes", PatternBytes(1, 1), {0});
  ExistOperation operation(fixture.core);
  const std::vector<std::string_view> keys{"no", "yes", "no"};
  operation.Start(keys);
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_THAT(operation.results(), testing::ElementsAre(0, 1, 0));
  operation.Start({});
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_TRUE(operation.results().empty());
}

TEST(ExistOperation, CutsManyKeysIntoWindows) {
  ClientFixture fixture;
  std::vector<std::string> names;
  names.reserve(20'000);
  for (int i = 0; i < 20'000; ++i) {
    names.push_back(fmt::format("k{}", i));
  }
  const std::vector<std::string_view> keys(names.begin(), names.end());
  ExistOperation operation(fixture.core);
  operation.Start(keys);
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(operation.results().size(), 20'000U);
  EXPECT_EQ(fixture.driver.transcript,
            "0 exist k0..k8191 (8192)\n"
            "1 exist k8192..k16383 (8192)\n"
            "2 exist k16384..k19999 (3616)\n");
}

TEST(ExistOperation, GivesEveryKeyTheCodeOfAMasterThatDoesNotAnswer) {
  ClientFixture fixture;
  fixture.calls_lost = 1'000'000;
  ExistOperation operation(fixture.core);
  const std::vector<std::string_view> keys{"a", "b"};
  operation.Start(keys);
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_THAT(operation.results(), testing::ElementsAre(-900, -900));
  EXPECT_EQ(operation.failures().count(), 2U);
  EXPECT_THAT(operation.failures().Summary(),
              testing::AllOf(testing::HasSubstr("RPC_FAIL (-900): is_exist \"a\""),
                             testing::HasSubstr("check that the master runs")));
}

TEST(ExistOperation, DoesNotAskAgainWhatMoreAskingCannotChange) {
  for (const auto& [why, code] :
       {std::pair{ErrorCode::kCancelled, -900}, std::pair{ErrorCode::kInvalidArgument, -600}}) {
    ClientFixture fixture;
    fixture.refuse_calls = Error{why, "the client was stopped, or the master refused in words"};
    ExistOperation operation(fixture.core);
    const std::vector<std::string_view> keys{"a"};
    operation.Start(keys);
    EXPECT_TRUE(fixture.driver.Run(operation));
    EXPECT_EQ(fixture.calls, 1);
    EXPECT_THAT(operation.results(), testing::ElementsAre(code));
  }
}

TEST(KeyOperations, AKeyThatIsTooLongIsNotFoundAndNotSent) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(1, 1), {0});
  const std::string longest(kMaxKeyBytes, 'x');
  const std::string longer = longest + 'x';
  const std::vector<std::string_view> keys{longer, "k", longest};
  ExistOperation exist(fixture.core);
  exist.Start(keys);
  EXPECT_TRUE(fixture.driver.Run(exist));
  EXPECT_THAT(exist.results(), testing::ElementsAre(0, 1, 0));
  RemoveOperation remove(fixture.core);
  remove.Start(keys, true);
  EXPECT_TRUE(fixture.driver.Run(remove));
  EXPECT_THAT(remove.results(), testing::ElementsAre(StoreCode::kObjectNotFound, StoreCode::kOk,
                                                     StoreCode::kObjectNotFound));
  EXPECT_THAT(fixture.driver.transcript, testing::HasSubstr(longest));
  EXPECT_THAT(fixture.driver.transcript, testing::Not(testing::HasSubstr(longer)));
}

TEST(RemoveOperation, RemovesAndForgets) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(1, 1), {0});
  fixture.core.cache().Offer("k", std::make_shared<Location>(),
                             fixture.driver.now + std::chrono::seconds(10),
                             fixture.core.cache().TicketFor("k"));
  RemoveOperation operation(fixture.core);
  const std::vector<std::string_view> keys{"k", "missing"};
  operation.Start(keys, false);
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_THAT(operation.results(),
              testing::ElementsAre(StoreCode::kOk, StoreCode::kObjectNotFound));
  EXPECT_EQ(fixture.core.cache().Find("k", fixture.driver.now).location, nullptr);
}

TEST(RemoveOperation, CountsAKeyAsRemovedWhenItsLostTryDidIt) {
  ClientFixture fixture;
  fixture.master.Mount("a:1", 4096, Uuid{1, 1});
  fixture.master.Make("k", PatternBytes(1, 1), {0});
  fixture.calls_lost = 1;
  fixture.lost_are_served = true;
  RemoveOperation operation(fixture.core);
  const std::vector<std::string_view> keys{"k"};
  operation.Start(keys, false);
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_THAT(operation.results(), testing::ElementsAre(StoreCode::kOk));
}

TEST(CallOperation, RepeatsUntilAnsweredOrOutOfPatience) {
  ClientFixture fixture;
  fixture.calls_lost = 3;
  RemoveAllOperation operation(fixture.core);
  operation.Start({.force = true}, std::chrono::seconds(1));
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(operation.code(), StoreCode::kOk);
  fixture.calls_lost = 1'000'000;
  operation.Start({.force = true}, std::chrono::seconds(1));
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(operation.code(), StoreCode::kRpcFail);
  EXPECT_EQ(operation.cause(), "connection reset");
}

// Which is how a master that started in between knows that the memory may be leased already.
TEST(MountOperation, SaysThatItIsRepeated) {
  ClientFixture fixture;
  fixture.calls_lost = 1;
  MountOperation operation(fixture.core);
  operation.Start({}, std::chrono::seconds(10));
  EXPECT_TRUE(fixture.driver.Run(operation));
  EXPECT_EQ(fixture.driver.transcript,
            "0 mount\n1 no answer: connection reset\n6 mount, repeated\n");
}

TEST(FailureLog, KeepsAHundredTextsAndCountsTheRest) {
  FailureLog log;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    log.Add(i, StoreCode::kObjectNotFound,
            FailureText(StoreCode::kObjectNotFound, "get", fmt::format("k{}", i), ""));
  }
  EXPECT_EQ(log.kept().size(), FailureLog::kKept);
  EXPECT_EQ(log.count(), 1000U);
  EXPECT_THAT(log.Summary(), testing::HasSubstr("(and 999 more keys failed)"));
  log.Clear();
  EXPECT_EQ(log.code(), StoreCode::kOk);
  EXPECT_EQ(log.Summary(), "");
}

TEST(FailureLog, TellsOfAFailureBeforeKeysThatExisted) {
  FailureLog log;
  const auto add = [&](StoreCode code) {
    const auto item = static_cast<std::uint32_t>(log.count());
    const std::string key = fmt::format("k{}", item);
    log.Add(item, code, log.Keeps(code) ? FailureText(code, "put", key, "") : std::string());
  };
  for (int i = 0; i < 1000; ++i) {
    add(StoreCode::kObjectAlreadyExists);
  }
  EXPECT_EQ(log.code(), StoreCode::kObjectAlreadyExists);
  EXPECT_THAT(log.Summary(), testing::AllOf(testing::HasSubstr("\"k0\""),
                                            testing::HasSubstr("(and 999 more keys existed)")));
  add(StoreCode::kNoAvailableHandle);
  EXPECT_EQ(log.code(), StoreCode::kNoAvailableHandle);
  EXPECT_THAT(log.Summary(), testing::AllOf(testing::HasSubstr("\"k1000\""),
                                            testing::Not(testing::HasSubstr("more keys"))));
  add(StoreCode::kTransferFail);
  EXPECT_EQ(log.code(), StoreCode::kNoAvailableHandle);
  EXPECT_THAT(log.Summary(), testing::HasSubstr("(and 1 more keys failed)"));
  EXPECT_EQ(log.count(), 1002U);
}

}  // namespace
}  // namespace mooncake::store
