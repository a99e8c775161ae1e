#include "mooncake-common/src/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace mooncake {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

MapEnv With(std::string name, std::string value) {
  MapEnv env;
  env.Set(std::move(name), std::move(value));
  return env;
}

class Log : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(InitLoggingFromEnv(MapEnv()));
    SetLogLevel(LogLevel::kInfo);
  }
};

TEST_F(Log, TheLevelComesFromTheEnvironment) {
  ASSERT_TRUE(InitLoggingFromEnv(With("MC_LOG_LEVEL", "error")).has_value());
  EXPECT_FALSE(LogEnabled(LogLevel::kWarning));
  EXPECT_TRUE(LogEnabled(LogLevel::kError));
  ASSERT_TRUE(InitLoggingFromEnv(With("MC_LOG_LEVEL", "TRACE")).has_value());
  EXPECT_TRUE(LogEnabled(LogLevel::kTrace));
  ASSERT_TRUE(InitLoggingFromEnv(MapEnv()).has_value());
  EXPECT_FALSE(LogEnabled(LogLevel::kTrace));
  EXPECT_TRUE(LogEnabled(LogLevel::kInfo));
  const auto bad = InitLoggingFromEnv(With("MC_LOG_LEVEL", "loud"));
  ASSERT_FALSE(bad.has_value());
  EXPECT_THAT(bad.error().message, HasSubstr("MC_LOG_LEVEL=\"loud\""));
}

TEST_F(Log, WhatAProgramSetsSinceThenStays) {
  const MapEnv env = With("MC_LOG_LEVEL", "TRACE");
  ASSERT_TRUE(InitLoggingFromEnv(env));
  SetLogLevel(LogLevel::kError);
  ASSERT_TRUE(InitLoggingFromEnv(env));
  EXPECT_FALSE(LogEnabled(LogLevel::kWarning)) << "the environment says what it said before";
  ASSERT_TRUE(InitLoggingFromEnv(With("MC_LOG_LEVEL", "WARNING")));
  EXPECT_TRUE(LogEnabled(LogLevel::kWarning)) << "it has changed";
}

TEST_F(Log, AFolderThatCannotBeMadeIsAnErrorThatNamesIt) {
  const auto bad = InitLoggingFromEnv(With("MC_LOG_DIR", "/dev/null/logs"));
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code, ErrorCode::kIo);
  EXPECT_THAT(bad.error().message, HasSubstr("/dev/null/logs"));
}

TEST_F(Log, LinesGoToTheFolderAndOnlyWarningsToStandardError) {
  std::string pattern = (std::filesystem::temp_directory_path() / "log_test.XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(pattern.data());
  testing::internal::CaptureStderr();
  ASSERT_TRUE(InitLoggingFromEnv(With("MC_LOG_DIR", (folder / "logs").string())).has_value());
  MC_LOG_TRACE("dropped {}", 1);
  MC_LOG_INFO("quiet {}", 2);
  MC_LOG_WARNING("loud {}", 3);
  const std::string standard_error = testing::internal::GetCapturedStderr();
  EXPECT_THAT(standard_error, HasSubstr("loud 3"));
  EXPECT_THAT(standard_error, Not(HasSubstr("quiet")));
  std::ifstream file(folder / "logs" / fmt::format("mooncake.{}.log", getpid()));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_THAT(text, HasSubstr("quiet 2"));
  EXPECT_THAT(text, HasSubstr("loud 3"));
  EXPECT_THAT(text, Not(HasSubstr("dropped")));
  std::filesystem::remove_all(folder);
}

TEST_F(Log, AProgramsFileIsFoundByItsLink) {
  std::string pattern = (std::filesystem::temp_directory_path() / "log_test.XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(pattern.data());
  std::filesystem::create_symlink("of_an_earlier_run", folder / "tool.INFO");
  testing::internal::CaptureStderr();
  ASSERT_TRUE(LogToFolder(folder.string(), "tool"));
  SetStandardErrorLevel(LogLevel::kError);
  MC_LOG_WARNING("only in the file");
  SetStandardErrorLevel(LogLevel::kInfo);
  MC_LOG_INFO("in both");
  const std::string standard_error = testing::internal::GetCapturedStderr();
  EXPECT_THAT(standard_error, HasSubstr("in both"));
  EXPECT_THAT(standard_error, Not(HasSubstr("only in the file")));
  const std::string name = std::filesystem::read_symlink(folder / "tool.INFO").string();
  EXPECT_THAT(name, testing::MatchesRegex(R"(tool\.INFO\.[0-9]+-[0-9]+\.[0-9]+)"));
  std::ifstream file(folder / "tool.INFO");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_THAT(text, HasSubstr("only in the file"));
  EXPECT_THAT(text, HasSubstr("in both"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace mooncake
