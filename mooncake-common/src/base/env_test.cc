#include "mooncake-common/src/base/env.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace mooncake {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

MapEnv With(std::string name, std::string value) {
  MapEnv env;
  env.Set(std::move(name), std::move(value));
  return env;
}

TEST(Env, TheTableIsSorted) {
  EXPECT_TRUE(std::ranges::is_sorted(kEnvTable, std::ranges::less_equal(), &EnvVariable::name));
}

TEST(Env, OffMeansOffAndEmptyMeansUnset) {
  for (const char* off : {"0", "false", "off", "No"}) {
    EXPECT_EQ(EnvFlag("MC_FORCE_TCP", With("MC_FORCE_TCP", off)), false) << off;
    EXPECT_EQ(EnvFlag("MC_STORE_DESCRIPTOR_CACHE", With("MC_STORE_DESCRIPTOR_CACHE", off)), false);
  }
  EXPECT_EQ(EnvFlag("MC_FORCE_TCP", With("MC_FORCE_TCP", "1")), true);
  EXPECT_EQ(EnvFlag("MC_FORCE_TCP", MapEnv()), false);
  EXPECT_EQ(EnvFlag("MC_STORE_DESCRIPTOR_CACHE", With("MC_STORE_DESCRIPTOR_CACHE", "")), true);
  EXPECT_EQ(EnvInteger("MC_HANDSHAKE_PORT", With("MC_HANDSHAKE_PORT", "  ")), 12001);
}

TEST(Env, AMalformedValueIsAnErrorWithNameValueAndWhatIsAllowed) {
  const auto flag = EnvFlag("MC_FORCE_TCP", With("MC_FORCE_TCP", "maybe"));
  ASSERT_FALSE(flag.has_value());
  EXPECT_EQ(flag.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      flag.error().message,
      "environment variable MC_FORCE_TCP=\"maybe\": allowed is 1, 0, true, false, yes, no, on, "
      "off");
  const auto lanes = EnvInteger("MC_TCP_LANES_PER_PEER", With("MC_TCP_LANES_PER_PEER", "17"));
  ASSERT_FALSE(lanes.has_value());
  EXPECT_THAT(lanes.error().message, HasSubstr("MC_TCP_LANES_PER_PEER=\"17\": allowed is a whole "
                                               "number from 1 to 16"));
  const auto level = EnvChoice("MC_LOG_LEVEL", With("MC_LOG_LEVEL", "LOUD"));
  ASSERT_FALSE(level.has_value());
  EXPECT_THAT(level.error().message, HasSubstr("TRACE|INFO|WARNING|ERROR"));
}

TEST(Env, ReadsEachType) {
  EXPECT_EQ(EnvBytes("MC_HANDSHAKE_MAX_LENGTH", With("MC_HANDSHAKE_MAX_LENGTH", "2mb")), 2U << 20);
  EXPECT_FALSE(EnvBytes("MC_HANDSHAKE_MAX_LENGTH", With("MC_HANDSHAKE_MAX_LENGTH", "1")));
  EXPECT_EQ(EnvDuration("MC_TRANSFER_TIMEOUT", MapEnv()), 30s);
  EXPECT_EQ(EnvDuration("MC_TRANSFER_TIMEOUT", With("MC_TRANSFER_TIMEOUT", "60")), 60s);
  EXPECT_EQ(EnvDuration("MC_TRANSFER_TIMEOUT", With("MC_TRANSFER_TIMEOUT", "5500ms")), 5500ms);
  EXPECT_FALSE(EnvDuration("MC_TRANSFER_TIMEOUT", With("MC_TRANSFER_TIMEOUT", "4")));
  EXPECT_FALSE(
      EnvDuration("MC_HANDSHAKE_CONNECT_TIMEOUT", With("MC_HANDSHAKE_CONNECT_TIMEOUT", "3601")));
  EXPECT_EQ(EnvDuration("MC_STORE_PUT_WAIT_MS", With("MC_STORE_PUT_WAIT_MS", "0")), 0ms);
  EXPECT_EQ(EnvTimeout("MC_RPC_TIMEOUT_MS", MapEnv()).value(), std::optional<Duration>(30s));
  EXPECT_EQ(EnvTimeout("MC_RPC_TIMEOUT_MS", With("MC_RPC_TIMEOUT_MS", "-1")).value(), std::nullopt);
  EXPECT_EQ(EnvTimeout("MC_SLICE_TIMEOUT", MapEnv()).value(), std::nullopt);
  EXPECT_FALSE(EnvTimeout("MC_RPC_TIMEOUT_MS", With("MC_RPC_TIMEOUT_MS", "never")));
  EXPECT_EQ(EnvAutoFlag("MC_ENFORCE_REMOTE_ACCESSIBLE", MapEnv()).value(), std::nullopt);
  EXPECT_EQ(
      EnvAutoFlag("MC_ENFORCE_REMOTE_ACCESSIBLE", With("MC_ENFORCE_REMOTE_ACCESSIBLE", "false"))
          .value(),
      std::optional<bool>(false));
  EXPECT_FALSE(
      EnvAutoFlag("MC_ENFORCE_REMOTE_ACCESSIBLE", With("MC_ENFORCE_REMOTE_ACCESSIBLE", "perhaps")));
  EXPECT_EQ(EnvChoice("MC_LOG_LEVEL", With("MC_LOG_LEVEL", " warning ")), "WARNING");
  EXPECT_EQ(EnvChoice("MC_TCP_PROTO", MapEnv()), "");
  EXPECT_EQ(EnvText("MC_TCP_BIND_ADDRESS", With("MC_TCP_BIND_ADDRESS", "10.0.0.1")), "10.0.0.1");
}

TEST(Env, AnAliasCountsWhenTheNameIsUnset) {
  MapEnv env = With("MC_MIN_PRC_PORT", "20000");
  EXPECT_EQ(EnvInteger("MC_MIN_RPC_PORT", env), 20000);
  env.Set("MC_MIN_RPC_PORT", "21000");
  EXPECT_EQ(EnvInteger("MC_MIN_RPC_PORT", env), 21000);
  const auto bad = EnvInteger("MC_MIN_RPC_PORT", With("MC_MIN_PRC_PORT", "80"));
  ASSERT_FALSE(bad.has_value());
  EXPECT_THAT(bad.error().message, HasSubstr("MC_MIN_PRC_PORT=\"80\""));  // What the user wrote.
}

TEST(Env, NotesUnknownAndIneffectiveVariablesOnly) {
  const MapEnv env({{"HOME", "/root"},
                    {"MC_FORCE_TCP", "1"},
                    {"MC_MIN_PRC_PORT", "15000"},
                    {"MC_METADATA_SERVER", "http://x"},
                    {"MC_SIM_SEED", "1"},
                    {"MC_FORCE_TPC", "1"},
                    {"MC_IB_PORT", "1"},
                    {"MOONCAKE_STORE_CHECKSUM", "1"},
                    {"MOONCAKE_MASTER", "read in Python"},
                    {"MC_SOMETHING_ELSE_ENTIRELY", "1"}});
  EXPECT_THAT(UnreadEnvNotes(env),
              ElementsAre("environment variable \"MC_FORCE_TPC\" is unknown and ignored; is "
                          "MC_FORCE_TCP meant?",
                          "environment variable MC_IB_PORT has no effect in this build",
                          "environment variable \"MC_SOMETHING_ELSE_ENTIRELY\" is unknown and "
                          "ignored",
                          "environment variable MOONCAKE_STORE_CHECKSUM has no effect in this "
                          "build"));
}

TEST(Env, TheReferenceHasARowForEachVariable) {
  const std::string reference = DumpEnvReference();
  for (const EnvVariable& row : kEnvTable) {
    EXPECT_THAT(reference, HasSubstr(fmt::format("\n| `{}`", row.name)));
  }
  EXPECT_THAT(reference, HasSubstr("without effect in this build:\n`MC_AUTO_GID_MAX_RETRIES`\n"));
  EXPECT_THAT(reference, HasSubstr("| `MC_MIN_RPC_PORT` (or `MC_MIN_PRC_PORT`) | 15000 | a whole "
                                   "number from 1024 to 65535 |"));
  EXPECT_THAT(reference, HasSubstr("one of TRACE\\|INFO\\|WARNING\\|ERROR"));
  EXPECT_THAT(reference, HasSubstr("| `MC_TRANSFER_TIMEOUT` | 30 s |"));
}

TEST(Env, TheProcessIsASourceToo) {
  EXPECT_THAT(ProcessEnv::Get().Names(), testing::Contains("PATH"));
  EXPECT_TRUE(ProcessEnv::Get().Find("PATH").has_value());
  EXPECT_FALSE(ProcessEnv::Get().Find("MC_NO_SUCH_VARIABLE").has_value());
}

}  // namespace
}  // namespace mooncake
