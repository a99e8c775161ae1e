// What both tools share: they read flags, start an engine with one managed buffer, and, as
// initiator, find the target's; and how they tell a throughput.
//
// Thread-safety: none; set up and torn down by main(). The engine may then be used from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

namespace mooncake::transfer {

struct BenchSession {
  std::shared_ptr<Engine> engine;
  std::byte* buffer = nullptr;  // FLAGS_buffer_size bytes, registered.
  SegmentId target = kLocalSegment;
  std::uint64_t target_address =
      0;  // Of the target's first buffer, at least FLAGS_buffer_size bytes.
};

// An engine with its buffer. Errors name the flag to change.
[[nodiscard]] Result<BenchSession> StartSession();

// Adds the target that FLAGS_segment_id names.
[[nodiscard]] Result<void> OpenTarget(BenchSession& session);

// Serves until SIGINT or SIGTERM; returns the exit code.
[[nodiscard]] int ServeTarget(const BenchSession& session);

// Parses the command line, and sets up the log as flags and environment say; exits as the flag
// library does on unknown flags. Errors name the flag or variable.
[[nodiscard]] Result<void> ParseBenchFlags(int argc, char** argv, const char* usage);

// "throughput 1.25 GB/s", in the unit that the flags name.
[[nodiscard]] std::string ThroughputText(double bytes_per_second);

}  // namespace mooncake::transfer
