#include "mooncake-store/src/protocol/error_code.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace mooncake::store {
namespace {

TEST(StoreCode, HasTheNumbersAndNamesOfThePublishedInterface) {
  EXPECT_EQ(ToInt(StoreCode::kOk), 0);
  EXPECT_EQ(ToInt(StoreCode::kNoAvailableHandle), -200);
  EXPECT_EQ(ToInt(StoreCode::kInvalidParams), -600);
  EXPECT_EQ(ToInt(StoreCode::kReplicaIsNotReady), -703);
  EXPECT_EQ(ToInt(StoreCode::kObjectNotFound), -704);
  EXPECT_EQ(ToInt(StoreCode::kObjectHasLease), -706);
  EXPECT_EQ(ToInt(StoreCode::kTenantNotEmpty), -1702);
  EXPECT_EQ(StoreCodeName(StoreCode::kObjectNotFound), "OBJECT_NOT_FOUND");
  EXPECT_EQ(StoreCodeName(StoreCode::kK8sLeaseNotFound), "K8S_LEASE_NOT_FOUND");
}

TEST(StoreCode, EachHasANameOfItsOwn) {
  std::set<std::string> names;
  int count = 0;
  for (std::int32_t number = -3000; number <= 10; ++number) {
    const std::string name(StoreCodeName(static_cast<StoreCode>(number)));
    if (name == "UNKNOWN_ERROR") {
      continue;
    }
    ++count;
    EXPECT_TRUE(names.insert(name).second) << number;
  }
  EXPECT_EQ(count, 72);
  EXPECT_EQ(StoreCodeName(static_cast<StoreCode>(-2)), "UNKNOWN_ERROR");
}

}  // namespace
}  // namespace mooncake::store
