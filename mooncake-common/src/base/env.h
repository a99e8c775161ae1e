// Reads environment variables by the one table in env_table.h:
//   MC_TRY_ASSIGN(const bool force_tcp, EnvFlag("MC_FORCE_TCP"));
// A name that is not in the table, or has another type there, does not compile.
//
// Unset and empty are the same: the table's default. A malformed value is an error that names the
// variable, its value and what is allowed; it never falls back silently.
//
// Thread-safety: see EnvSource. Nothing is cached; read at set-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/env_source.h"
#include "mooncake-common/src/base/env_table.h"
#include "mooncake-common/src/base/result.h"

namespace mooncake {

// A variable's row, found and type-checked while compiling.
template <EnvType kType>
class EnvName {
 public:
  consteval EnvName(const char* name) : row_(Find(name)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] constexpr const EnvVariable& Row() const { return kEnvTable[row_]; }

 private:
  static consteval std::size_t Find(std::string_view name) {
    for (std::size_t row = 0; row < kEnvTable.size(); ++row) {
      if (kEnvTable[row].name == name && kEnvTable[row].type == kType) {
        return row;
      }
    }
    throw "no such variable of this type in env_table.h";
  }

  std::size_t row_;
};

// Errors of all: kInvalidArgument.
[[nodiscard]] Result<bool> EnvFlag(EnvName<EnvType::kFlag> name,
                                   const EnvSource& env = ProcessEnv::Get());
// nullopt: "auto".
[[nodiscard]] Result<std::optional<bool>> EnvAutoFlag(EnvName<EnvType::kAutoFlag> name,
                                                      const EnvSource& env = ProcessEnv::Get());
[[nodiscard]] Result<std::int64_t> EnvInteger(EnvName<EnvType::kInteger> name,
                                              const EnvSource& env = ProcessEnv::Get());
[[nodiscard]] Result<std::uint64_t> EnvBytes(EnvName<EnvType::kBytes> name,
                                             const EnvSource& env = ProcessEnv::Get());
[[nodiscard]] Result<Duration> EnvDuration(EnvName<EnvType::kDuration> name,
                                           const EnvSource& env = ProcessEnv::Get());
// nullopt: no limit.
[[nodiscard]] Result<std::optional<Duration>> EnvTimeout(EnvName<EnvType::kTimeout> name,
                                                         const EnvSource& env = ProcessEnv::Get());
// One of the row's choices as written there, or "" if unset without default.
[[nodiscard]] Result<std::string> EnvChoice(EnvName<EnvType::kChoice> name,
                                            const EnvSource& env = ProcessEnv::Get());
// Cannot fail: any text is good.
[[nodiscard]] std::string EnvText(EnvName<EnvType::kText> name,
                                  const EnvSource& env = ProcessEnv::Get());

// One sentence for each MC_* variable that is set and not read here, in name order: unknown ones
// with the known name that comes closest, and known ones of Mooncake that have no effect in this
// build.
[[nodiscard]] std::vector<std::string> UnreadEnvNotes(const EnvSource& env);

// Logs those of the process as warnings, at the first call only.
void WarnOfUnreadEnvOnce();

// The table in Markdown, as it stands in the documentation; then the names that have no effect.
[[nodiscard]] std::string DumpEnvReference();

}  // namespace mooncake
