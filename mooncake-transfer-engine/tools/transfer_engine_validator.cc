// Proves that bytes arrive whole: writes a pattern to the target, reads it back into other memory,
// compares. Runs as transfer_engine_bench does: one process with --mode=target, the other with
// --segment_id=<its name>.

#include <fmt/core.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/random.h"
#include "mooncake-transfer-engine/tools/bench_flags.h"
#include "mooncake-transfer-engine/tools/bench_session.h"

namespace mooncake::transfer {
namespace {

Result<int> Validate(BenchSession& session) {
  MC_TRY(OpenTarget(session));
  const auto count = static_cast<std::size_t>(FLAGS_batch_size);
  const std::uint64_t bytes = count * FLAGS_block_size;
  if (2 * bytes > FLAGS_buffer_size) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("two batches of {} bytes do not fit into --buffer_size={}", bytes,
                            FLAGS_buffer_size));
  }
  std::byte* const written = session.buffer;
  std::byte* const read = session.buffer + bytes;
  std::vector<TransferRequest> requests(count);
  const Instant end = SteadyClock::Get().Now() + std::chrono::seconds(FLAGS_duration);
  std::uint64_t rounds = 0;
  Rng rng(1);
  do {
    for (std::uint64_t offset = 0; offset + 8 <= bytes; offset += 8) {
      const std::uint64_t word = rng.Next();
      std::memcpy(written + offset, &word, 8);
    }
    for (const Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
      for (std::size_t i = 0; i < count; ++i) {
        requests[i] = {.opcode = opcode,
                       .local = (opcode == Opcode::kWrite ? written : read) + i * FLAGS_block_size,
                       .segment = session.target,
                       .remote_address = session.target_address + i * FLAGS_block_size,
                       .length_bytes = FLAGS_block_size};
      }
      MC_TRY(session.engine->Transfer(requests));
    }
    if (std::memcmp(written, read, bytes) != 0) {
      return Fail(
          ErrorCode::kInternal,
          fmt::format("round {}: what was read back differs from what was written", rounds));
    }
    ++rounds;
  } while (SteadyClock::Get().Now() < end);
  fmt::print(stderr, "Test completed: {} rounds of {} bytes written, read back and equal\n", rounds,
             bytes);
  return 0;
}

Result<int> RunValidator() {
  if (FLAGS_mode != "initiator" && FLAGS_mode != "target") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--mode={}: use initiator or target", FLAGS_mode));
  }
  MC_TRY_ASSIGN(BenchSession session, StartSession());
  return FLAGS_mode == "target" ? ServeTarget(session) : Validate(session);
}

}  // namespace
}  // namespace mooncake::transfer

int main(int argc, char** argv) {
  mooncake::transfer::ParseBenchFlags(argc, argv,
                                      "Proves that the transfer engine moves bytes unharmed");
  const auto code = mooncake::transfer::RunValidator();
  if (!code) {
    fmt::print(stderr, "transfer_engine_validator: {}\n", code.error().ToString());
    return 1;
  }
  return *code;
}
