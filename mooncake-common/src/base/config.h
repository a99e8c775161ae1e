// A configuration file as flat keys: nested maps of YAML or JSON become "outer.inner".
//
// Thread-safety: a value; reading from several threads is fine.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/base/text.h"

namespace mooncake {

enum class ConfigFormat : std::uint8_t { kYaml, kJson };

// Getters return the fallback for a key that is absent or empty, and kInvalidArgument naming file,
// key and value for one that does not fit the type.
class Config {
 public:
  // An empty configuration.
  Config() = default;

  // The text of a file; `name` stands in messages. At most 1 MiB, 10 000 keys, 32 levels; YAML's
  // anchors count as often as they are used.
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

  [[nodiscard]] std::string GetString(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] Result<bool> GetBool(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<double> GetDouble(std::string_view key, double fallback) const;
  // "500" is milliseconds; "10s", "2m", "1h" are as they say.
  [[nodiscard]] Result<Duration> GetDuration(std::string_view key, Duration fallback) const;
  // "64mb" or bytes.
  [[nodiscard]] Result<std::uint64_t> GetBytes(std::string_view key, std::uint64_t fallback) const;
  // Out of T's range is an error too.
  template <std::integral T>
  [[nodiscard]] Result<T> GetInteger(std::string_view key, T fallback) const {
    const auto text = Find(key);
    if (!text) {
      return fallback;
    }
    if (const auto value = ParseInteger<T>(*text)) {
      return *value;
    }
    return Unfit(key, *text, "a whole number in the range of this setting");
  }

  // All keys that have a value, in order: for finding those that nobody reads.
  [[nodiscard]] std::vector<std::string> Keys() const;

 private:
  [[nodiscard]] std::unexpected<Error> Unfit(std::string_view key, std::string_view value,
                                             std::string_view expected) const;

  std::string name_;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace mooncake
