// Which build this is.
#pragma once

#include <string_view>

namespace mooncake::store {

[[nodiscard]] std::string_view Version();  // "1.0.0"
// Abbreviated commit when the build was configured; "unknown" outside a checkout.
[[nodiscard]] std::string_view GitHash();

}  // namespace mooncake::store
