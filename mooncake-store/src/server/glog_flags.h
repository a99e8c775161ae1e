// The flags of glog, for every executable whose users know them. Linked into executables only.
//
// Thread-safety: called from main() before other threads start.
#pragma once

#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

// Applies those that mean something here: log_dir, logtostderr, minloglevel, v. The others are
// accepted. They win over MC_LOG_LEVEL and MC_LOG_DIR.
//
// Errors: those of LogToFolder.
[[nodiscard]] Result<void> ApplyLogFlags();

}  // namespace mooncake::store
