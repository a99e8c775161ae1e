#include "mooncake-common/src/base/duration.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

std::optional<Duration> UnitLength(std::string_view unit, Duration bare_unit) {
  const std::string lower = ToLowerAscii(unit);
  if (lower.empty()) {
    return bare_unit;
  }
  if (lower == "ms") {
    return milliseconds(1);
  }
  if (lower == "s") {
    return seconds(1);
  }
  if (lower == "m") {
    return minutes(1);
  }
  if (lower == "h") {
    return hours(1);
  }
  return std::nullopt;
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text, Duration bare_unit) {
  const std::string_view trimmed = TrimAscii(text);
  const std::string_view digits = trimmed.substr(0, trimmed.find_first_not_of("0123456789"));
  const auto count = ParseInteger<std::int64_t>(digits);
  const auto unit = UnitLength(TrimAscii(trimmed.substr(digits.size())), bare_unit);
  std::int64_t nanoseconds = 0;
  if (!count || !unit || __builtin_mul_overflow(*count, unit->count(), &nanoseconds)) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("parse duration {}: expected a whole number, a bare one in units of {}, "
                    "or one with ms, s, m or h, up to 292 years",
                    Quote(text), FormatDuration(bare_unit)));
  }
  return Duration(nanoseconds);
}

std::string FormatDuration(Duration duration) {
  static constexpr std::array<std::pair<Duration, std::string_view>, 5> kUnits = {{
      {hours(1), "h"},
      {minutes(1), "m"},
      {seconds(1), "s"},
      {milliseconds(1), "ms"},
      {std::chrono::microseconds(1), "us"},
  }};
  if (duration == Duration::zero()) {
    return "0ms";
  }
  for (const auto& [unit, name] : kUnits) {
    if (duration % unit == Duration::zero()) {
      return fmt::format("{}{}", duration / unit, name);
    }
  }
  return fmt::format("{}ns", duration.count());
}

}  // namespace mooncake
