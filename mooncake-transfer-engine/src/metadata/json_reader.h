// Reads JSON from outside: bounded in size and depth, errors as values. For .cc files only
// (nlohmann is heavy).
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/result.h"

namespace mooncake::transfer {

// Deeper than any document we know (5), far less than what would strain a stack.
inline constexpr std::size_t kMaxJsonDepth = 32;

// Whether brackets nest deeper than kMaxJsonDepth. Looked at before parsing, so that no hostile
// document is ever built. Broken text may be misjudged; the parser refuses it anyway.
[[nodiscard]] bool IsTooDeep(std::string_view text);

// Parses one JSON document, surrounded by any white space, into an object. `what` names it in
// errors ("segment descriptor").
//
// Errors: kMalformed when longer than `max_bytes`, deeper than kMaxJsonDepth, not JSON (numbers out
// of range and invalid UTF-8 included), or no object.
[[nodiscard]] Result<nlohmann::json> ReadJsonObject(std::string_view text, std::size_t max_bytes,
                                                    std::string_view what);

// The member `key` of `object`, or `fallback` when it is absent or null.
//
// Errors: kMalformed when it is something else than a string, or than an integer in [0, `max`].
[[nodiscard]] Result<std::string> ReadString(const nlohmann::json& object, const char* key,
                                             std::string_view fallback);
[[nodiscard]] Result<std::uint64_t> ReadUnsigned(const nlohmann::json& object, const char* key,
                                                 std::uint64_t fallback, std::uint64_t max);

// The document without white space, keys sorted. Bytes that are no UTF-8 become U+FFFD, so that it
// never fails.
[[nodiscard]] std::string WriteJson(const nlohmann::json& document);

}  // namespace mooncake::transfer
