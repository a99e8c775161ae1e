// 128-bit identities of clients and segments. Text form, as the published tools print it:
// "<first>-<second>", both decimal.
//
// Thread-safety: a value.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake {

struct Uuid {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  [[nodiscard]] bool IsZero() const { return first == 0 && second == 0; }
  [[nodiscard]] std::string ToString() const;
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

// Never zero.
[[nodiscard]] Uuid GenerateUuid(Rng& rng);

// Errors: kInvalidArgument, quoting the text, unless it is two decimal numbers of at most 64 bits
// with one '-' between them.
[[nodiscard]] Result<Uuid> ParseUuid(std::string_view text);

}  // namespace mooncake

template <>
struct std::hash<mooncake::Uuid> {
  // Random identities need no mixing beyond keeping both halves.
  std::size_t operator()(const mooncake::Uuid& uuid) const noexcept {
    return uuid.first ^ (uuid.second * 0x9e3779b97f4a7c15U);
  }
};
