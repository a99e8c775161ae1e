#include "mooncake-common/src/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace mooncake {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kYaml = R"(
# a comment
rpc:
  port: 50051
  bind: "0.0.0.0"
lease_ttl: 10s
ratio: 0.95
ssd: off
size: 64 MB
empty:
)";
constexpr std::string_view kJson =
    R"({"rpc": {"port": 50051, "bind": "0.0.0.0"}, "lease_ttl": "10s",
  "ratio": 0.95, "ssd": false, "size": "64 MB", "empty": null})";

class ConfigFile : public testing::Test {
 protected:
  ConfigFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "config_test.XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~ConfigFile() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, std::string_view text) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(ConfigFile, YamlAndJsonGiveTheSameFlatKeys) {
  for (const std::string& path :
       {Write("a.yaml", kYaml), Write("a.yml", kYaml), Write("a.json", kJson)}) {
    SCOPED_TRACE(path);
    const auto config = Config::Load(path);
    ASSERT_TRUE(config.has_value()) << config.error().ToString();
    EXPECT_THAT(config->Keys(),
                ElementsAre("lease_ttl", "ratio", "rpc.bind", "rpc.port", "size", "ssd"));
    EXPECT_EQ(config->Find("rpc.port"), "50051");
    EXPECT_EQ(config->Find("rpc.none"), std::nullopt);
    EXPECT_EQ(config->Find("rpc.bind"), "0.0.0.0");
    EXPECT_EQ(config->Find("lease_ttl"), "10s");
    EXPECT_EQ(config->Find("ratio"), "0.95");
    EXPECT_EQ(config->Find("size"), "64 MB");
    EXPECT_EQ(config->Find("empty"), std::nullopt);
  }
}

TEST_F(ConfigFile, OtherEndingsAndAbsentFilesAreErrors) {
  EXPECT_EQ(Config::Load(Write("c.toml", "")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Config::Load("/no/such/file.yaml").error().code, ErrorCode::kNotFound);
}

TEST(Config, ListsDuplicatesAndMalformedTextAreErrors) {
  for (const char* bad : {"a: [1, 2]", "- 1", "a:\n  b: 1\na.b: 2", "a: 1\na: 2", "just a word",
                          "a: *nowhere", "a: {b: 1", "? [x]\n: 1", "\t- bad"}) {
    const auto parsed = Config::Parse(bad, ConfigFormat::kYaml, "t.yaml");
    ASSERT_FALSE(parsed.has_value()) << bad;
    EXPECT_THAT(parsed.error().message, HasSubstr("t.yaml"));
  }
  for (const char* bad :
       {"", "{", "[1]", "{\"a\":[1]}", "{\"a\":1,}", "{\"a\":{\"b\":1},\"a.b\":2}"}) {
    EXPECT_FALSE(Config::Parse(bad, ConfigFormat::kJson, "t.json").has_value()) << bad;
  }
  EXPECT_TRUE(Config::Parse("", ConfigFormat::kYaml, "t.yaml").has_value());
}

TEST(Config, SizeDepthAndFanOutAreBounded) {
  EXPECT_FALSE(
      Config::Parse(std::string((1 << 20) + 1, ' '), ConfigFormat::kYaml, "t").has_value());
  std::string deep;
  for (int i = 0; i < 100; ++i) {
    deep += "{\"a\":";
  }
  EXPECT_FALSE(
      Config::Parse(deep + "1" + std::string(100, '}'), ConfigFormat::kJson, "t").has_value());
  // Each level repeats the one before ten times: a hundred thousand settings, or sections without
  // any, out of a few lines.
  for (const std::string leaf : {"{x: 1}", "{}"}) {
    std::string laughs = "a0: &a0 " + leaf + "\n";
    for (int level = 1; level <= 5; ++level) {
      laughs += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " {";
      for (int i = 0; i < 10; ++i) {
        laughs += std::string(i == 0 ? "" : ", ") + "k" + std::to_string(i) + ": *a" +
                  std::to_string(level - 1);
      }
      laughs += "}\n";
    }
    const auto parsed = Config::Parse(laughs, ConfigFormat::kYaml, "t.yaml");
    ASSERT_FALSE(parsed.has_value()) << leaf;
    EXPECT_THAT(parsed.error().message, HasSubstr("more than 10000"));
  }
}

TEST(Config, ALongValueOrKeyCountsAsOftenAsItIsUsed) {
  const std::string half_mib(1 << 19, 'v');
  std::string values = "k: &v " + half_mib + "\n";
  std::string keys = "{\"" + half_mib + "\": {\"x\": 1";
  for (int i = 0; i < 40; ++i) {
    values += "k" + std::to_string(i) + ": *v\n";
    keys += ", \"x" + std::to_string(i) + "\": 1";
  }
  const auto long_values = Config::Parse(values, ConfigFormat::kYaml, "t.yaml");
  ASSERT_FALSE(long_values.has_value());
  EXPECT_THAT(long_values.error().message, HasSubstr("more than 16 MiB"));
  const auto long_keys = Config::Parse(keys + "}}", ConfigFormat::kJson, "t.json");
  ASSERT_FALSE(long_keys.has_value());
  EXPECT_THAT(long_keys.error().message, HasSubstr("more than 16 MiB"));
}

}  // namespace
}  // namespace mooncake
