// The wall clock as segment descriptors show it to people.
#pragma once

#include <string>

namespace mooncake::transfer {

// Now, local time: "2026-12-02 02:01:16.696704". For people only: nothing compares it. Any thread.
[[nodiscard]] std::string TimestampNow();

}  // namespace mooncake::transfer
