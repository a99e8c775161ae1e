#include "mooncake-common/src/base/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

using Wide = unsigned __int128;

constexpr std::size_t kFractionMaxDigits = 18;  // 10^18 < 2^64.

// Bytes in the unit; nullopt if there is no such unit.
std::optional<std::uint64_t> UnitBytes(std::string_view unit) {
  const std::string lower = ToLowerAscii(unit);
  if (lower.empty() || lower == "b") {
    return 1;
  }
  constexpr std::string_view kPrefixes = "kmgt";
  const std::size_t step = kPrefixes.find(lower.front());
  if (step == std::string_view::npos || (lower.size() > 1 && lower.substr(1) != "b")) {
    return std::nullopt;
  }
  return std::uint64_t{1} << (10 * (step + 1));
}

std::optional<std::uint64_t> Parse(std::string_view text) {
  text = TrimAscii(text);
  constexpr std::string_view kDigits = "0123456789";
  const std::string_view whole = text.substr(0, text.find_first_not_of(kDigits));
  text.remove_prefix(whole.size());
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = text.substr(0, text.find_first_not_of(kDigits));
    text.remove_prefix(fraction.size());
    if (fraction.empty() || fraction.size() > kFractionMaxDigits) {
      return std::nullopt;
    }
  }
  const auto count = ParseInteger<std::uint64_t>(whole);
  const auto unit_bytes = UnitBytes(TrimAscii(text));
  if (!count || !unit_bytes) {
    return std::nullopt;
  }
  Wide bytes = static_cast<Wide>(*count) * *unit_bytes;
  if (!fraction.empty()) {
    Wide scale = 1;
    for (std::size_t i = 0; i < fraction.size(); ++i) {
      scale *= 10;
    }
    bytes += static_cast<Wide>(*ParseInteger<std::uint64_t>(fraction)) * *unit_bytes / scale;
  }
  if (bytes > UINT64_MAX) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

Result<std::uint64_t> ParseByteSize(std::string_view text) {
  if (const auto bytes = Parse(text)) {
    return *bytes;
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("parse size {}: expected bytes as in 4096, 16MB, \"1.5 gb\" (units b, k, "
                          "kb, m, mb, g, gb, t, tb; steps of 1024), below 2^64",
                          Quote(text)));
}

std::string FormatByteSize(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB",
                                                             "TiB", "PiB", "EiB"};
  if (bytes < kKiB) {
    return fmt::format("{} B", bytes);
  }
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kUnits.at(unit));
}

}  // namespace mooncake
