// A configuration file as flat keys: nested maps of YAML or JSON become "outer.inner".
//
// Thread-safety: a value; reading from several threads is fine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/result.h"

namespace mooncake {

enum class ConfigFormat : std::uint8_t { kYaml, kJson };

class Config {
 public:
  // An empty configuration.
  Config() = default;

  // The text of a file; `name` stands in messages. At most 1 MiB, 10 000 keys and maps,
  // 32 levels, and 16 MiB of flat keys and values; YAML's anchors count as often as they are used.
  //
  // Errors: kInvalidArgument, with line and column if the parser knows them: malformed, a list, a
  // key given twice, too large.
  [[nodiscard]] static Result<Config> Parse(std::string_view text, ConfigFormat format,
                                            std::string_view name);

  // A file that ends in .yaml, .yml or .json.
  //
  // Errors: those of Parse; kNotFound or kIo if it cannot be read; kInvalidArgument for another
  // ending.
  [[nodiscard]] static Result<Config> Load(const std::string& path);

  // The value as text; nullopt if absent or empty.
  [[nodiscard]] std::optional<std::string_view> Find(std::string_view key) const;

  // All keys that have a value, in order: for finding those that nobody reads.
  [[nodiscard]] std::vector<std::string> Keys() const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace mooncake
