// Spans of time as people write them: "500" and "500ms" (milliseconds), "10s", "2 m", "1h".
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake {

// A whole number, then perhaps ms, s, m or h in any case; a bare number counts in `bare_unit`.
//
// Errors: kInvalidArgument quoting the text: no number, another unit, negative, over 292 years.
[[nodiscard]] Result<Duration> ParseDuration(std::string_view text,
                                             Duration bare_unit = std::chrono::milliseconds(1));

// For people and for ParseDuration, in the largest unit that keeps it whole: "10s", "1500ms"; what
// is no whole number of milliseconds is printed as "1500us" or "10ns".
[[nodiscard]] std::string FormatDuration(Duration duration);

}  // namespace mooncake
