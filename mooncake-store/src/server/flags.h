// The command line of mooncake_master: all its flags, by gflags. Linked into executables only.
//
// Thread-safety: called from main() before other threads start.
#pragma once

#include <string>

#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/server/settings.h"

namespace mooncake::store {

// Parses the command line as gflags does: --flag=v, --flag v, -flag, --noflag. Ends the process for
// --help and its kin and for unknown flags or values of the wrong type (exit 1, with a message), as
// users of gflags expect, and for --version (exit 0).
//
// Errors: kInvalidArgument for an argument that is no flag.
[[nodiscard]] Result<void> ParseCommandLine(int argc, char** argv);

// All settings of the table, after ParseCommandLine().
[[nodiscard]] FlagValues ReadFlags();

// --config_path; empty = none.
[[nodiscard]] std::string ConfigPath();

}  // namespace mooncake::store
