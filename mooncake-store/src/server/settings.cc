#include "mooncake-store/src/server/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mooncake-common/src/base/byte_size.h"
#include "mooncake-common/src/base/duration.h"
#include "mooncake-common/src/base/text.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

namespace {

std::unexpected<Error> Unfit(const Setting& setting, std::string_view text, std::string_view origin,
                             std::string_view allowed) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} = {} is not allowed: {} must be {}",
                                                       origin, Quote(text), setting.name, allowed));
}

bool IsChoice(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const std::size_t bar = std::min(choices.find('|'), choices.size());
    if (choices.substr(0, bar) == text) {
      return true;
    }
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  return false;
}

// std::from_chars for double, whole text, finite.
std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its end is given.
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

Result<Settings::Value> Settings::Parse(const Setting& setting, std::string_view text,
                                        std::string origin) {
  Value value{.origin = std::move(origin), .text = std::string(text)};
  switch (setting.kind) {
    case SettingKind::kFlag: {
      const auto flag = ParseBool(text);
      if (!flag) {
        return Unfit(setting, text, value.origin, "true or false");
      }
      value.flag = *flag;
      break;
    }
    case SettingKind::kInteger: {
      const auto integer = ParseInteger<std::uint64_t>(TrimAscii(text));
      if (!integer || static_cast<double>(*integer) < setting.low ||
          static_cast<double>(*integer) > setting.high) {
        return Unfit(
            setting, text, value.origin,
            fmt::format("a whole number from {:.0f} to {:.0f}", setting.low, setting.high));
      }
      value.integer = *integer;
      break;
    }
    case SettingKind::kNumber: {
      const auto number = ParseNumber(TrimAscii(text));
      if (!number || *number < setting.low || *number > setting.high) {
        return Unfit(setting, text, value.origin,
                     fmt::format("a number from {} to {}", setting.low, setting.high));
      }
      value.number = *number;
      break;
    }
    case SettingKind::kDuration: {
      const auto time = ParseDuration(text);
      if (!time || *time > std::chrono::milliseconds(kMaxSpanMs)) {
        return Unfit(
            setting, text, value.origin,
            "a duration of at most 100 years: milliseconds, or a number with ms, s, m or h");
      }
      value.time = *time;
      break;
    }
    case SettingKind::kByteSize: {
      const auto bytes = ParseByteSize(text);
      if (!bytes) {
        return Unfit(setting, text, value.origin,
                     "a size: bytes, or a number with KB, MB, GB or TB");
      }
      value.integer = *bytes;
      break;
    }
    case SettingKind::kChoice:
      if (!IsChoice(setting.choices, text)) {
        return Unfit(setting, text, value.origin, fmt::format("one of {}", setting.choices));
      }
      break;
    case SettingKind::kText:
      break;
  }
  return value;
}

bool Settings::Same(const Setting& setting, const Value& a, const Value& b) {
  switch (setting.kind) {
    case SettingKind::kFlag:
      return a.flag == b.flag;
    case SettingKind::kInteger:
    case SettingKind::kByteSize:
      return a.integer == b.integer;
    case SettingKind::kNumber:
      return a.number == b.number;
    case SettingKind::kDuration:
      return a.time == b.time;
    case SettingKind::kText:
    case SettingKind::kChoice:
      break;
  }
  return a.text == b.text;
}

Result<Settings> Settings::Merge(const FlagValues& flags, const Config& file,
                                 std::string_view file_name) {
  Settings settings;
  std::set<std::string, std::less<>> known;
  for (const Setting& setting : AllSettings()) {
    const auto flag = flags.find(setting.name);
    MC_CHECK(flag != flags.end());
    MC_TRY_ASSIGN(const Value normal,
                  Parse(setting, flag->second.default_text, fmt::format("--{}", setting.name)));
    const std::string_view key = setting.config_key.empty() ? setting.name : setting.config_key;
    known.emplace(key);
    std::string_view text = flag->second.text;
    std::string origin = fmt::format("--{}", setting.name);
    if (!flag->second.given) {
      if (const auto in_file = file.Find(key)) {
        text = *in_file;
        origin = fmt::format("{} in {}", key, file_name);
      }
    }
    MC_TRY_ASSIGN(Value value, Parse(setting, text, std::move(origin)));
    if (!setting.without_effect.empty() && !Same(setting, value, normal)) {
      settings.notes_.push_back(fmt::format("{} = {} changes nothing: {}", value.origin,
                                            Quote(value.text), setting.without_effect));
    }
    if (IsChoice(setting.unbuilt, value.text)) {
      settings.notes_.push_back(fmt::format("{} = {} is not built: it does what {} does",
                                            value.origin, Quote(value.text), normal.text));
    }
    settings.values_.emplace(setting.name, std::move(value));
  }
  for (const std::string& key : file.Keys()) {
    if (!known.contains(key)) {
      settings.notes_.push_back(
          fmt::format("{} in {} changes nothing: there is no such setting", Quote(key), file_name));
    }
  }
  return settings;
}

const Settings::Value& Settings::At(std::string_view name) const {
  const auto found = values_.find(name);
  MC_CHECK(found != values_.end());
  return found->second;
}

}  // namespace mooncake::store
