#include "mooncake-common/src/base/uuid.h"

#include <fmt/format.h>

#include <optional>

#include "mooncake-common/src/base/text.h"

namespace mooncake {

std::string Uuid::ToString() const { return fmt::format("{}-{}", first, second); }

Uuid GenerateUuid(Rng& rng) {
  Uuid uuid;
  while (uuid.IsZero()) {
    uuid = {.first = rng.Next(), .second = rng.Next()};
  }
  return uuid;
}

Result<Uuid> ParseUuid(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto first = ParseInteger<std::uint64_t>(text.substr(0, dash));
    const auto second = ParseInteger<std::uint64_t>(text.substr(dash + 1));
    if (first && second) {
      return Uuid{.first = *first, .second = *second};
    }
  }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("parse uuid {}: expected two decimal numbers as in 123-456", Quote(text)));
}

}  // namespace mooncake
