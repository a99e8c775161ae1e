// Tells users about variables that they set and nothing reads: a misspelt name, or one of
// Mooncake's that has no effect in this build.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mooncake {

// The sentence for one variable that is set; nullopt if it is read here, belongs to the tests of
// Mooncake, or is neither known nor begins with MC_.
[[nodiscard]] std::optional<std::string> UnreadEnvNote(std::string_view name);

// Mooncake's variables that are accepted and do nothing here, sorted; a trailing '*' stands for any
// ending.
[[nodiscard]] std::span<const std::string_view> EnvNamesWithoutEffect();

}  // namespace mooncake
