// Request traces: a line a request, in JSON, whose "hash_ids" name the blocks of its prompt in
// order (benchmarks/traces/README.md). Other members are passed over.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <istream>
#include <vector>

#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

// A request's blocks: each is of use only if all before it are there.
using Chain = std::vector<std::uint64_t>;

// All requests, in their order.
//
// Errors: kMalformed names the first line that is none.
[[nodiscard]] Result<std::vector<Chain>> ReadTrace(std::istream& lines);

}  // namespace mooncake::store
