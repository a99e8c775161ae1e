#include "mooncake-store/src/master/eviction/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace mooncake::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Trace, IsALineARequest) {
  std::istringstream lines(
      "{\"timestamp\": 0, \"hash_ids\": [0, 14, 18446744073709551615]}\n{\"hash_ids\": []}\n");
  const auto chains = ReadTrace(lines);
  ASSERT_TRUE(chains) << chains.error().ToString();
  EXPECT_THAT(*chains, ElementsAre(ElementsAre(0, 14, ~std::uint64_t{0}), ElementsAre()));
}

TEST(Trace, NamesTheFirstLineThatIsNoRequest) {
  for (const std::string wrong :
       {"", "7", "null", "[]", "{}", "{\"hash_ids\": 3}", "{\"hash_ids\": [1, -2]}",
        "{\"hash_ids\": [1.5]}", "{\"hash_ids\": [\"1\"]}", "{\"hash_ids\": [1]"}) {
    std::istringstream lines("{\"hash_ids\": [1]}\n" + wrong + "\n{\"hash_ids\": [2]}\n");
    const auto chains = ReadTrace(lines);
    ASSERT_FALSE(chains) << wrong;
    EXPECT_EQ(chains.error().code, ErrorCode::kMalformed);
    EXPECT_THAT(chains.error().message, HasSubstr("line 2 of the trace"));
    EXPECT_THAT(chains.error().message, HasSubstr(wrong));
  }
}

}  // namespace
}  // namespace mooncake::store
