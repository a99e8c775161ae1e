#include "mooncake-transfer-engine/src/engine/reason_book.h"

#include <fmt/format.h>

namespace mooncake::transfer {

std::uint32_t ReasonBook::Add(std::uint32_t before, std::string_view path, const Error& why) {
  std::string text =
      path.empty() ? why.ToString() : fmt::format("via {}: {}", path, why.ToString());
  // Failures come in runs, so an equal line is near the end if there is one.
  constexpr std::size_t kLookBack = 32;
  const std::size_t first = lines_.size() > kLookBack ? lines_.size() - kLookBack : 0;
  for (std::size_t i = first; i < lines_.size(); ++i) {
    if (lines_[i].before == before && lines_[i].text == text) {
      return static_cast<std::uint32_t>(i + 1);
    }
  }
  if (lines_.size() == kMaxLines) {
    return before != 0 ? before : static_cast<std::uint32_t>(kMaxLines);
  }
  lines_.push_back(Line{.before = before, .code = why.code, .text = std::move(text)});
  return static_cast<std::uint32_t>(lines_.size());
}

std::string ReasonBook::Text(std::uint32_t chain) const {
  std::string text;
  while (chain != 0) {
    const Line& line = lines_[chain - 1];
    text.insert(0, text.empty() ? line.text : fmt::format("{}; ", line.text));
    chain = line.before;
  }
  return text;
}

ErrorCode ReasonBook::Code(std::uint32_t chain) const {
  return chain == 0 ? ErrorCode::kInternal : lines_[chain - 1].code;
}

}  // namespace mooncake::transfer
