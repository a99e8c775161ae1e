// Small helpers for text that people typed: trimming, strict numbers, booleans, quoting in
// messages.
//
// Thread-safety: pure functions. ASCII only; the locale has no say.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace mooncake {

// `text` without blanks, tabs and line ends at both ends.
[[nodiscard]] std::string_view TrimAscii(std::string_view text);

[[nodiscard]] std::string ToLowerAscii(std::string_view text);
[[nodiscard]] bool EqualsIgnoreCase(std::string_view a, std::string_view b);

// 1/0, true/false, yes/no, on/off, enable/disable in any case, blanks around them allowed.
[[nodiscard]] std::optional<bool> ParseBool(std::string_view text);

// `text` in double quotes for an error message: control and non-ASCII bytes as \xHH, cut after 128
// bytes, so that a hostile peer can neither forge log lines nor flood them.
[[nodiscard]] std::string Quote(std::string_view text);

// The whole of `text` as a number: no blanks, no plus, no minus for unsigned types, no overflow.
template <std::integral T>
[[nodiscard]] std::optional<T> ParseInteger(std::string_view text, int base = 10) {
  T value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value, base);
  if (error != std::errc() || stop != end || text.empty()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace mooncake
