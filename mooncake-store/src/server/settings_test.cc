#include "mooncake-store/src/server/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mooncake-common/src/base/byte_size.h"
#include "mooncake-store/src/server/server_options.h"

namespace mooncake::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Flags as they are when none is given, without gflags.
FlagValues Untouched() {
  FlagValues flags;
  for (const Setting& setting : AllSettings()) {
    std::string text;
    switch (setting.kind) {
      case SettingKind::kFlag:
        text = "false";
        break;
      case SettingKind::kInteger:
        text = std::to_string(static_cast<std::uint64_t>(setting.low));
        break;
      case SettingKind::kNumber:
        text = "0.5";
        break;
      case SettingKind::kDuration:
      case SettingKind::kByteSize:
        text = "0";
        break;
      case SettingKind::kChoice:
        text = setting.choices.substr(0, setting.choices.find('|'));
        break;
      case SettingKind::kText:
        break;
    }
    flags[std::string(setting.name)] = {.text = text, .default_text = text};
  }
  return flags;
}

void Give(FlagValues& flags, const std::string& name, std::string text) {
  flags.at(name).text = std::move(text);
  flags.at(name).given = true;
}

Config File(std::string_view yaml) {
  auto config = Config::Parse(yaml, ConfigFormat::kYaml, "m.yaml");
  EXPECT_TRUE(config) << config.error().ToString();
  return std::move(*config);
}

std::string ErrorOf(const FlagValues& flags, std::string_view yaml = "{}") {
  const auto settings = Settings::Merge(flags, File(yaml), "m.yaml");
  if (!settings) {
    return settings.error().message;
  }
  const auto options = ServerOptionsFrom(*settings, 4);
  return options ? "" : options.error().message;
}

TEST(Settings, PreferAGivenFlagToTheFileAndTheFileToTheDefault) {
  FlagValues flags = Untouched();
  const Config file =
      File("rpc_port: 7\nmetrics_port: 8\ndefault_kv_lease_ttl: 2s\nmetadata_memory_limit: 64MB\n");
  Give(flags, "rpc_port", "9");
  const auto settings = Settings::Merge(flags, file, "m.yaml");
  ASSERT_TRUE(settings) << settings.error().ToString();
  EXPECT_EQ(settings->Integer("rpc_port"), 9u);
  EXPECT_EQ(settings->Integer("metrics_port"), 8u);
  EXPECT_EQ(settings->Time("default_kv_lease_ttl"), std::chrono::seconds(2));
  EXPECT_EQ(settings->Bytes("metadata_memory_limit"), 64 * kMiB);
  EXPECT_EQ(settings->Number("eviction_ratio"), 0.5);
  EXPECT_EQ(settings->Origin("rpc_port"), "--rpc_port");
  EXPECT_EQ(settings->Origin("metrics_port"), "metrics_port in m.yaml");
  EXPECT_THAT(settings->notes(), IsEmpty());
}

TEST(Settings, ReadTheClientsTimeUnderItsOwnKey) {
  const auto settings =
      Settings::Merge(Untouched(), File("client_live_ttl_sec: 60\nclient_ttl: 5\n"), "m.yaml");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->Integer("client_ttl"), 60u);
  EXPECT_THAT(settings->notes(),
              ElementsAre("\"client_ttl\" in m.yaml changes nothing: there is no such setting"));
}

TEST(Settings, RefuseWhatIsNotAllowedInWords) {
  const std::vector<std::array<std::string, 3>> cases{
      {"rpc_port", "65536", "a whole number from 0 to 65535"},
      {"rpc_port", "-1", "a whole number from 0 to 65535"},
      {"client_ttl", "0", "a whole number from 1 to"},
      {"eviction_ratio", "1.01", "a number from 0 to 1"},
      {"eviction_ratio", "nan", "a number from 0 to 1"},
      {"default_kv_lease_ttl", "10 parsecs", "a duration"},
      {"default_kv_lease_ttl", "-5", "a duration"},
      {"default_kv_lease_ttl", "876601h", "a duration of at most 100 years"},
      {"metadata_memory_limit", "64 parsecs", "a size"},
      {"memory_allocator", "malloc", "one of offset|cachelib"},
      {"allocation_strategy", "Random", "one of random|"},
      {"eviction_policy", "fifo", "one of hdi|lru"},
      {"dynamic_replication_mode", "", "one of off|observe|enforce"},
      {"offloading_queue_limit", "100000001", "from 1 to 100000000"},
  };
  for (const auto& [name, text, allowed] : cases) {
    FlagValues flags = Untouched();
    Give(flags, name, text);
    EXPECT_THAT(ErrorOf(flags), testing::AllOf(HasSubstr("--" + name), HasSubstr(allowed)));
  }
  EXPECT_THAT(ErrorOf(Untouched(), "eviction_ratio: 7"), HasSubstr("eviction_ratio in m.yaml"));
  EXPECT_THAT(ErrorOf(Untouched(), "enable_ha: perhaps"), HasSubstr("true or false"));
}

TEST(Settings, RefuseThoseThatContradictEachOther) {
  FlagValues flags = Untouched();
  Give(flags, "default_kv_soft_pin_ttl", "2h");
  Give(flags, "max_kv_soft_pin_ttl", "1h");
  EXPECT_THAT(ErrorOf(flags), testing::AllOf(HasSubstr("--default_kv_soft_pin_ttl"),
                                             HasSubstr("--max_kv_soft_pin_ttl = 1h")));
  flags = Untouched();
  Give(flags, "put_start_discard_timeout_sec", "31");
  Give(flags, "put_start_release_timeout_sec", "30");
  EXPECT_THAT(ErrorOf(flags), HasSubstr("--put_start_discard_timeout_sec"));
}

TEST(Settings, SayOnceWhatChangesNothing) {
  FlagValues flags = Untouched();
  Give(flags, "enable_ha", "true");
  Give(flags, "enable_offload", "false");  // As it is anyway.
  Give(flags, "nof_eviction_ratio", "0.50");
  const auto settings = Settings::Merge(flags, File("quota_bytes: 5\nno: {such: 1}"), "m.yaml");
  ASSERT_TRUE(settings);
  EXPECT_THAT(settings->notes(),
              ElementsAre(HasSubstr("--enable_ha"), HasSubstr("quota_bytes in m.yaml"),
                          HasSubstr("\"no.such\" in m.yaml")));
}

TEST(Settings, SayOnceWhichChoicesAreNotBuilt) {
  for (const std::string name : {"cxl", "ssd_free_ratio_first"}) {
    FlagValues flags = Untouched();
    Give(flags, "allocation_strategy", name);
    const auto settings = Settings::Merge(flags, Config(), "");
    ASSERT_TRUE(settings);
    EXPECT_THAT(settings->notes(), ElementsAre(AllOf(HasSubstr("--allocation_strategy"),
                                                     HasSubstr(name), HasSubstr("random"))));
    EXPECT_EQ(ServerOptionsFrom(*settings, 1)->master.allocation_strategy,
              AllocationStrategy::kRandom);
  }
  for (const std::string name : {"random", "free_ratio_first", "local_first"}) {
    FlagValues flags = Untouched();
    Give(flags, "allocation_strategy", name);
    EXPECT_THAT(Settings::Merge(flags, Config(), "")->notes(), IsEmpty()) << name;
  }
}

TEST(ServerOptions, ChoosePortAndThreadsAsDocumented) {
  const auto options = [](const FlagValues& flags, std::size_t cores) {
    return ServerOptionsFrom(*Settings::Merge(flags, Config(), ""), cores).value();
  };
  FlagValues flags = Untouched();
  Give(flags, "port", "50051");
  Give(flags, "max_threads", "16");
  EXPECT_EQ(options(flags, 4).rpc_port, 50051);
  EXPECT_EQ(options(flags, 4).rpc_threads, 4u);
  EXPECT_EQ(options(flags, 64).rpc_threads, 16u);
  EXPECT_EQ(options(flags, 0).rpc_threads, 1u);
  Give(flags, "rpc_port", "1234");
  Give(flags, "rpc_thread_num", "3");
  EXPECT_EQ(options(flags, 64).rpc_port, 1234);
  EXPECT_EQ(options(flags, 64).rpc_threads, 3u);
}

TEST(ServerOptions, TakeOverWhatTheMasterDecidesBy) {
  FlagValues flags = Untouched();
  Give(flags, "default_kv_lease_ttl", "200");
  Give(flags, "default_kv_soft_pin_ttl", "1m");
  Give(flags, "max_kv_soft_pin_ttl", "2m");
  Give(flags, "client_ttl", "7");
  Give(flags, "put_start_discard_timeout_sec", "8");
  Give(flags, "put_start_release_timeout_sec", "9");
  Give(flags, "allow_evict_soft_pinned_objects", "true");
  Give(flags, "eviction_ratio", "0.25");
  Give(flags, "allocation_strategy", "free_ratio_first");
  Give(flags, "eviction_policy", "lru");
  const auto settings = Settings::Merge(flags, Config(), "");
  ASSERT_TRUE(settings);
  const ServerOptions options = ServerOptionsFrom(*settings, 1).value();
  EXPECT_EQ(options.eviction_policy, EvictionPolicyKind::kLru);
  const MasterOptions& master = options.master;
  EXPECT_EQ(master.lease_ttl, std::chrono::milliseconds(200));
  EXPECT_EQ(master.soft_pin_ttl, std::chrono::minutes(1));
  EXPECT_EQ(master.max_soft_pin_ttl, std::chrono::minutes(2));
  EXPECT_EQ(master.client_ttl, std::chrono::seconds(7));
  EXPECT_EQ(master.put_discard, std::chrono::seconds(8));
  EXPECT_EQ(master.put_release, std::chrono::seconds(9));
  EXPECT_TRUE(master.allow_evict_soft_pinned);
  EXPECT_EQ(master.eviction_ratio, 0.25);
  EXPECT_EQ(master.allocation_strategy, AllocationStrategy::kFreeRatioFirst);
}

}  // namespace
}  // namespace mooncake::store
