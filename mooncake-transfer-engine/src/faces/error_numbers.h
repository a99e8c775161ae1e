// The numbers by which the public APIs call errors. Callers compare with them, so they never
// change.
//
// Thread-safety: pure functions.
#pragma once

#include "mooncake-common/src/base/result.h"

namespace mooncake::transfer {

// Negative: -1 invalid argument, -3 address not registered, -7 overlap, -200 metadata ...
[[nodiscard]] int ErrorNumber(ErrorCode code);

// The code of the classic `Status`: positive, the same numbers without the sign but for
// NotSupportedTransport (8) and NotImplemented (999).
[[nodiscard]] int StatusNumber(ErrorCode code);

}  // namespace mooncake::transfer
