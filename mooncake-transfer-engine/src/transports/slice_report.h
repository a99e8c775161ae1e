// Tells the sinks of a run of slices how they ended: one call for each stretch with one sink.
//
// Thread-safety: pure; calls the sinks on this thread. Nothing of a slice is touched after its sink
// was told, for it may be in use again by then.
#pragma once

#include <span>

#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake::transfer {

void ReportDone(std::span<Slice* const> slices);
void ReportFailed(std::span<Slice* const> slices, const Error& why);

}  // namespace mooncake::transfer
