#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mooncake-common/src/base/config.h"

// Any bytes give a configuration or an error, in both formats.
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
    }
  }
  return 0;
}
