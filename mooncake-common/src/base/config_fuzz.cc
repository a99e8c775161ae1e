#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mooncake-common/src/base/config.h"

// Any bytes give a configuration or an error, in both formats; what it holds can be read as
// anything.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto format : {mooncake::ConfigFormat::kYaml, mooncake::ConfigFormat::kJson}) {
    const auto config = mooncake::Config::Parse(text, format, "fuzz");
    if (!config) {
      MC_CHECK(!config.error().message.empty());
      continue;
    }
    for (const auto& key : config->Keys()) {
      MC_CHECK(config->Find(key).has_value());
      // A fallback comes back for absent keys only.
      const auto number = config->GetInteger<std::uint16_t>(key, 0);
      const auto real = config->GetDouble(key, 0);
      MC_CHECK(!number || real);
      MC_CHECK(!number || config->GetBytes(key, 0) == std::uint64_t{*number});
      MC_CHECK(!number || config->GetDuration(key, {}) == std::chrono::milliseconds(*number));
    }
  }
  return 0;
}
