// The flags of glog, for every executable whose users know them. Linked into executables only.
//
// Thread-safety: called from main() before other threads start.
#pragma once

#include "mooncake-common/src/base/result.h"

namespace mooncake {

// Applies those that mean something here: alsologtostderr, log_dir, logtostderr, minloglevel,
// stderrthreshold, v. The others are accepted. They win over MC_LOG_LEVEL and MC_LOG_DIR if
// InitLoggingFromEnv() was called before.
//
// Errors: those of LogToFolder.
[[nodiscard]] Result<void> ApplyLogFlags();

}  // namespace mooncake
