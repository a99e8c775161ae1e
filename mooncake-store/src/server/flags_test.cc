// The flags themselves: in step with the table of settings and with the documentation.
#include "mooncake-store/src/server/flags.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "mooncake-common/src/base/glog_flags.h"
#include "mooncake-store/src/server/server_options.h"

namespace mooncake::store {
namespace {

TEST(Flags, HaveDefaultsThatTheTableAllows) {
  const auto settings = Settings::Merge(ReadFlags(), Config(), "");
  ASSERT_TRUE(settings) << settings.error().ToString();
  EXPECT_THAT(settings->notes(), testing::IsEmpty());
  const auto options = ServerOptionsFrom(*settings, 2);
  ASSERT_TRUE(options) << options.error().ToString();
  const MasterOptions published;
  EXPECT_EQ(options->rpc_port, 50051);
  EXPECT_EQ(options->rpc_host, "0.0.0.0");
  EXPECT_EQ(options->admin_port, 9003);
  EXPECT_EQ(options->rpc_threads, 2u);
  EXPECT_FALSE(options->serve_metadata);
  EXPECT_EQ(options->metadata_port, 8080);
  EXPECT_EQ(options->master.lease_ttl, published.lease_ttl);
  EXPECT_EQ(options->master.soft_pin_ttl, published.soft_pin_ttl);
  EXPECT_EQ(options->master.max_soft_pin_ttl, published.max_soft_pin_ttl);
  EXPECT_EQ(options->master.client_ttl, published.client_ttl);
  EXPECT_EQ(options->master.put_discard, published.put_discard);
  EXPECT_EQ(options->master.put_release, published.put_release);
  EXPECT_EQ(options->master.eviction_ratio, published.eviction_ratio);
  EXPECT_TRUE(options->master.allow_evict_soft_pinned);
  EXPECT_EQ(options->eviction_policy, EvictionPolicyKind::kHdi);
}

// docs/operations.md names the flags that matter by purpose; the full list is generated.
TEST(Flags, StandInTheDocumentationWithTheirDefaults) {
  std::ifstream file(std::string(MC_SOURCE_FOLDER) + "/docs/operations.md");
  ASSERT_TRUE(file);
  const FlagValues flags = ReadFlags();
  const std::regex row(R"(\| `--([a-z_]+)` \| (?:`([^`]*)`)? ?\|.*)");
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) {
      continue;
    }
    ++rows;
    const auto flag = flags.find(match[1].str());
    ASSERT_NE(flag, flags.end()) << line;
    std::string value = flag->second.default_text;
    if (value.starts_with("0.") && value.size() > 5 && value[3] != '.') {
      value = fmt::format("{:g}", std::stod(value));  // gflags prints 0.05 in full.
    }
    EXPECT_EQ(match[2].str(), value) << line;
  }
  EXPECT_GT(rows, 15);
}

TEST(Flags, OfTheCommandLineAreReadInAllTheirSpellings) {
  std::array<std::string, 8> words{"mooncake_master", "--rpc_port=7",
                                   "-metrics_port",   "8",
                                   "--enable_ha",     "--noenable_metric_reporting",
                                   "--client_ttl=10", "-v=0"};
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  ASSERT_TRUE(ParseCommandLine(static_cast<int>(words.size()), argv.data()));
  const FlagValues flags = ReadFlags();
  EXPECT_EQ(flags.at("rpc_port").text, "7");
  EXPECT_EQ(flags.at("metrics_port").text, "8");
  EXPECT_EQ(flags.at("enable_ha").text, "true");
  EXPECT_EQ(flags.at("enable_metric_reporting").text, "false");
  EXPECT_TRUE(flags.at("client_ttl").given) << "though it is the default's value";
  EXPECT_FALSE(flags.at("port").given);
  EXPECT_TRUE(ApplyLogFlags());
}

}  // namespace
}  // namespace mooncake::store
