#include "mooncake-common/src/base/env.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <expected>
#include <utility>

#include "mooncake-common/src/base/byte_size.h"
#include "mooncake-common/src/base/duration.h"
#include "mooncake-common/src/base/env_unread.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

Duration UnitOf(const EnvVariable& row) {
  return row.unit == "s" ? Duration(std::chrono::seconds(1)) : std::chrono::milliseconds(1);
}

std::string Allowed(const EnvVariable& row) {
  const auto range = [&](std::string_view what) {
    return row.max == INT64_MAX ? fmt::format("{}, at least {}", what, row.min)
                                : fmt::format("{} from {} to {}", what, row.min, row.max);
  };
  switch (row.type) {
    case EnvType::kFlag:
      return "1, 0, true, false, yes, no, on, off";
    case EnvType::kAutoFlag:
      return "auto, 1, 0, true, false, yes, no, on, off";
    case EnvType::kInteger:
      return range("a whole number");
    case EnvType::kBytes:
      return range("bytes, as in 65536 or 64kb,");
    case EnvType::kDuration:
      return range(fmt::format("{}, or with a unit as in 500ms, 10s, 2m, 1h,", row.unit));
    case EnvType::kTimeout:
      return fmt::format("{}, or with a unit as in 500ms, 10s; negative for no limit", row.unit);
    case EnvType::kChoice:
      return fmt::format("one of {}", row.choices);
    case EnvType::kText:
      return "any text";
  }
  return {};
}

// A value with the name under which it was found.
struct Setting {
  std::string_view name;
  std::string value;
};

Setting Lookup(const EnvVariable& row, const EnvSource& env) {
  for (const std::string_view name : {row.name, row.alias}) {
    if (!name.empty()) {
      auto value = env.Find(name);
      if (value && !TrimAscii(*value).empty()) {
        return {.name = name, .value = std::move(*value)};
      }
    }
  }
  return {.name = row.name, .value = std::string(row.fallback)};
}

std::unexpected<Error> Malformed(const EnvVariable& row, const Setting& setting) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("environment variable {}={}: allowed is {}", setting.name,
                          Quote(setting.value), Allowed(row)));
}

bool InRange(const EnvVariable& row, std::int64_t value) {
  return value >= row.min && value <= row.max;
}

std::optional<Duration> ToDuration(const EnvVariable& row, std::string_view text) {
  const auto parsed = ParseDuration(text, UnitOf(row));
  // The range is in whole units; "1500ms" may lie between two of them.
  if (!parsed || *parsed < row.min * UnitOf(row) || *parsed / UnitOf(row) > row.max) {
    return std::nullopt;
  }
  return *parsed;
}

Result<bool> Flag(const EnvVariable& row, const EnvSource& env) {
  const Setting setting = Lookup(row, env);
  if (const auto value = ParseBool(setting.value)) {
    return *value;
  }
  return Malformed(row, setting);
}

Result<std::optional<bool>> AutoFlag(const EnvVariable& row, const EnvSource& env) {
  const Setting setting = Lookup(row, env);
  if (EqualsIgnoreCase(TrimAscii(setting.value), "auto")) {
    return std::nullopt;
  }
  if (const auto value = ParseBool(setting.value)) {
    return value;
  }
  return Malformed(row, setting);
}

Result<std::int64_t> Integer(const EnvVariable& row, const EnvSource& env) {
  const Setting setting = Lookup(row, env);
  const auto value = ParseInteger<std::int64_t>(TrimAscii(setting.value));
  if (!value || !InRange(row, *value)) {
    return Malformed(row, setting);
  }
  return *value;
}

Result<std::uint64_t> Bytes(const EnvVariable& row, const EnvSource& env) {
  const Setting setting = Lookup(row, env);
  const auto value = ParseByteSize(setting.value);
  if (!value || *value > INT64_MAX || !InRange(row, static_cast<std::int64_t>(*value))) {
    return Malformed(row, setting);
  }
  return *value;
}

Result<Duration> Span(const EnvVariable& row, const EnvSource& env) {
  const Setting setting = Lookup(row, env);
  if (const auto value = ToDuration(row, setting.value)) {
    return *value;
  }
  return Malformed(row, setting);
}

Result<std::optional<Duration>> Timeout(const EnvVariable& row, const EnvSource& env) {
  const Setting setting = Lookup(row, env);
  const auto number = ParseInteger<std::int64_t>(TrimAscii(setting.value));
  if (number && *number < 0) {
    return std::nullopt;
  }
  if (const auto value = ToDuration(row, setting.value)) {
    return value;
  }
  return Malformed(row, setting);
}

Result<std::string> Choice(const EnvVariable& row, const EnvSource& env) {
  const Setting setting = Lookup(row, env);
  const std::string_view wanted = TrimAscii(setting.value);
  if (wanted.empty()) {
    return std::string();
  }
  for (std::string_view rest = row.choices; !rest.empty();) {
    const std::string_view choice = rest.substr(0, rest.find('|'));
    if (EqualsIgnoreCase(choice, wanted)) {
      return std::string(choice);
    }
    rest.remove_prefix(std::min(rest.size(), choice.size() + 1));
  }
  return Malformed(row, setting);
}

template <typename T>
std::optional<Error> ErrorOf(const Result<T>& result) {
  return result ? std::nullopt : std::optional<Error>(result.error());
}

std::optional<Error> Check(const EnvVariable& row, const EnvSource& env) {
  switch (row.type) {
    case EnvType::kFlag:
      return ErrorOf(Flag(row, env));
    case EnvType::kAutoFlag:
      return ErrorOf(AutoFlag(row, env));
    case EnvType::kInteger:
      return ErrorOf(Integer(row, env));
    case EnvType::kBytes:
      return ErrorOf(Bytes(row, env));
    case EnvType::kDuration:
      return ErrorOf(Span(row, env));
    case EnvType::kTimeout:
      return ErrorOf(Timeout(row, env));
    case EnvType::kChoice:
      return ErrorOf(Choice(row, env));
    case EnvType::kText:
      break;
  }
  return std::nullopt;
}

}  // namespace

Result<bool> EnvFlag(EnvName<EnvType::kFlag> name, const EnvSource& env) {
  return Flag(name.Row(), env);
}

Result<std::optional<bool>> EnvAutoFlag(EnvName<EnvType::kAutoFlag> name, const EnvSource& env) {
  return AutoFlag(name.Row(), env);
}

Result<std::int64_t> EnvInteger(EnvName<EnvType::kInteger> name, const EnvSource& env) {
  return Integer(name.Row(), env);
}

Result<std::uint64_t> EnvBytes(EnvName<EnvType::kBytes> name, const EnvSource& env) {
  return Bytes(name.Row(), env);
}

Result<Duration> EnvDuration(EnvName<EnvType::kDuration> name, const EnvSource& env) {
  return Span(name.Row(), env);
}

Result<std::optional<Duration>> EnvTimeout(EnvName<EnvType::kTimeout> name, const EnvSource& env) {
  return Timeout(name.Row(), env);
}

Result<std::string> EnvChoice(EnvName<EnvType::kChoice> name, const EnvSource& env) {
  return Choice(name.Row(), env);
}

std::string EnvText(EnvName<EnvType::kText> name, const EnvSource& env) {
  return Lookup(name.Row(), env).value;
}

std::vector<std::string> UnreadEnvNotes(const EnvSource& env) {
  std::vector<std::string> names = env.Names();
  std::ranges::sort(names);
  std::vector<std::string> notes;
  for (const std::string& name : names) {
    if (auto note = UnreadEnvNote(name)) {
      notes.push_back(std::move(*note));
    }
  }
  return notes;
}

void WarnOfUnreadEnvOnce() {
  static std::atomic<bool> done{false};
  if (!done.exchange(true)) {
    for (const std::string& note : UnreadEnvNotes(ProcessEnv::Get())) {
      MC_LOG_WARNING("{}", note);
    }
  }
}

std::string DumpEnvReference() {
  std::string text = "| Variable | Default | Allowed | Meaning |\n|---|---|---|---|\n";
  const auto cell = [](std::string value) {
    // A bar would end the cell.
    for (std::size_t at = 0; (at = value.find('|', at)) != std::string::npos; at += 2) {
      value.insert(at, "\\");
    }
    return value;
  };
  const MapEnv nothing_set;
  for (const EnvVariable& row : kEnvTable) {
    MC_CHECK(!Check(row, nothing_set));  // A default is one of the allowed values.
    text += fmt::format("| `{}`{} | {} | {} | {} |\n", row.name,
                        row.alias.empty() ? std::string() : fmt::format(" (or `{}`)", row.alias),
                        row.fallback.empty() ? std::string("unset")
                                             : fmt::format("{}{}", row.fallback,
                                                           row.type == EnvType::kDuration ||
                                                                   row.type == EnvType::kTimeout
                                                               ? fmt::format(" {}", row.unit)
                                                               : std::string()),
                        cell(Allowed(row)), cell(std::string(row.meaning)));
  }
  text += "\nKnown and without effect in this build:";
  for (const std::string_view name : EnvNamesWithoutEffect()) {
    text += fmt::format("\n`{}`", name);
  }
  text += '\n';
  return text;
}

}  // namespace mooncake
