#include "mooncake-common/src/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mooncake {
namespace {

constexpr std::size_t kQuotedMaxBytes = 128;

constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

std::string_view TrimAscii(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string ToLowerAscii(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), Lower);
  return lower;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

std::optional<bool> ParseBool(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kOn = {"1", "true", "yes", "on", "enable"};
  static constexpr std::array<std::string_view, 5> kOff = {"0", "false", "no", "off", "disable"};
  const auto is_text = [word = TrimAscii(text)](std::string_view candidate) {
    return EqualsIgnoreCase(word, candidate);
  };
  if (std::ranges::any_of(kOn, is_text)) {
    return true;
  }
  if (std::ranges::any_of(kOff, is_text)) {
    return false;
  }
  return std::nullopt;
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, kQuotedMaxBytes)) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c < ' ' || c > '~') {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  quoted += '"';
  if (text.size() > kQuotedMaxBytes) {
    quoted += fmt::format("... ({} bytes)", text.size());
  }
  return quoted;
}

}  // namespace mooncake
