#include "mooncake-store/src/master/key_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace mooncake::store {
namespace {

TEST(KeyPattern, IsFoundAnywhereInTheKey) {
  const auto pattern = KeyPattern::Compile("b+/[0-9]");
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->Matches("abb/7c"));
  EXPECT_FALSE(pattern->Matches("abb/c"));
  EXPECT_TRUE(KeyPattern::Compile("^a$")->Matches("a"));
  EXPECT_TRUE(KeyPattern::Compile("")->Matches("anything"));
  EXPECT_TRUE(KeyPattern::Compile(".")->Matches(std::string("\0", 1)));
}

TEST(KeyPattern, QuotesWhatDoesNotParse) {
  for (const char* text : {"[", "(", "*", "a{2,1}", "\\"}) {
    const auto pattern = KeyPattern::Compile(text);
    ASSERT_FALSE(pattern) << text;
    EXPECT_EQ(pattern.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(pattern.error().message.find(text), std::string::npos);
  }
}

TEST(KeyPattern, SurvivesPatternsThatExplodeAndLongKeys) {
  EXPECT_FALSE(KeyPattern::Compile("(a*)*b")->Matches(std::string(200, 'a')));
  EXPECT_TRUE(KeyPattern::Compile("(a|aa)*$")->Matches(std::string(16000, 'a')));
}

// Goal: no key holds the thread up for long. Method: a match at the end of the key, behind steps in
// the square of its length.
TEST(KeyPattern, GivesUpOnAKeyThatTakesTooManySteps) {
  const auto pattern = KeyPattern::Compile("a.*b|c");
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->Matches(std::string(300, 'a') + "c"));
  EXPECT_FALSE(pattern->Matches(std::string(3000, 'a') + "c"));
}

}  // namespace
}  // namespace mooncake::store
