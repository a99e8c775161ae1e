// What an operator may set: one table of all settings of mooncake_master with what is allowed, and
// their values, merged from flags and the configuration file.
//
// Thread-safety: values and pure functions. gflags stays in flags.cc.
// Precedence:    a flag that was given, else the configuration file, else the flag's default.
// Untrusted:     the file may hold anything; what is not allowed is an error in words.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/config.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

enum class SettingKind : std::uint8_t {
  kFlag,
  kInteger,
  kNumber,
  kDuration,
  kByteSize,
  kText,
  kChoice,
};

struct Setting {
  std::string_view name;  // Of the flag, and of the file's key unless `config_key` says otherwise.
  SettingKind kind = SettingKind::kText;
  double low = 0;  // kInteger, kNumber: both included.
  double high = 0;
  std::string_view choices;  // kChoice: "a|b".
  std::string_view unbuilt;  // kChoice: those of them that do what the default does.
  // Why nothing changes when it is set; empty for those that are used.
  std::string_view without_effect;
  std::string_view config_key;
};

// In the order in which the documentation lists them.
[[nodiscard]] std::span<const Setting> AllSettings();

// A flag as it was parsed.
struct FlagValue {
  std::string text;
  std::string default_text;
  bool given = false;  // On the command line, even if with the default's value.
};
using FlagValues = std::map<std::string, FlagValue, std::less<>>;

class Settings {
 public:
  // `flags` has all settings of the table. `file` is named `file_name` in messages.
  //
  // Errors: kInvalidArgument that names the flag or key, its value, and what is allowed.
  [[nodiscard]] static Result<Settings> Merge(const FlagValues& flags, const Config& file,
                                              std::string_view file_name);

  // Of a setting of that kind in the table.
  [[nodiscard]] bool Flag(std::string_view name) const { return At(name).flag; }
  [[nodiscard]] std::uint64_t Integer(std::string_view name) const { return At(name).integer; }
  [[nodiscard]] std::uint64_t Bytes(std::string_view name) const { return At(name).integer; }
  [[nodiscard]] double Number(std::string_view name) const { return At(name).number; }
  [[nodiscard]] Duration Time(std::string_view name) const { return At(name).time; }
  [[nodiscard]] const std::string& Text(std::string_view name) const { return At(name).text; }
  // "--eviction_ratio" or "eviction_ratio in master.yaml", for messages.
  [[nodiscard]] const std::string& Origin(std::string_view name) const { return At(name).origin; }

  // What the operator should know: settings without effect, keys that nobody reads.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Value {
    std::string origin;
    std::string text;
    bool flag = false;
    std::uint64_t integer = 0;
    double number = 0;
    Duration time{};
  };

  [[nodiscard]] static Result<Value> Parse(const Setting& setting, std::string_view text,
                                           std::string origin);
  [[nodiscard]] static bool Same(const Setting& setting, const Value& a, const Value& b);
  [[nodiscard]] const Value& At(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> notes_;
};

}  // namespace mooncake::store
