// Whatever stands in a configuration file, it is either refused in words or gives options that a
// master can be made with.
#include <cstddef>
#include <cstdint>

#include "mooncake-store/src/server/server_options.h"
#include "mooncake-store/src/server/settings.h"

namespace {

const mooncake::store::FlagValues& Defaults() {
  static const auto all = [] {
    mooncake::store::FlagValues flags;
    for (const auto& setting : mooncake::store::AllSettings()) {
      const bool is_choice = setting.kind == mooncake::store::SettingKind::kChoice;
      const std::string text(is_choice ? setting.choices.substr(0, setting.choices.find('|'))
                                       : "1");
      flags[std::string(setting.name)] = {.text = text, .default_text = text};
    }
    return flags;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mooncake;
  using namespace mooncake::store;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = Config::Parse(text, ConfigFormat::kYaml, "fuzz");
  if (!file) {
    return 0;
  }
  const auto settings = Settings::Merge(Defaults(), *file, "fuzz");
  if (!settings) {
    MC_CHECK(!settings.error().message.empty());
    return 0;
  }
  if (const auto options = ServerOptionsFrom(*settings, 2)) {
    MC_CHECK(options->master.eviction_ratio >= 0 && options->master.eviction_ratio <= 1);
    MC_CHECK(options->master.lease_ttl >= Duration::zero());
    MC_CHECK(options->rpc_threads >= 1);
  }
  return 0;
}
