// Proves that bytes arrive whole: writes a pattern to the target, reads it back into other memory,
// compares. Runs as transfer_engine_bench does: one process with --mode=target, the other with
// --segment_id=<its name>.

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-transfer-engine/tools/bench_flags.h"
#include "mooncake-transfer-engine/tools/bench_session.h"

namespace mooncake::transfer {
namespace {

// What all threads of a run share. Each has its own part of both buffers: what it writes, and
// behind that what it reads back.
struct Run {
  const BenchSession& session;
  std::uint64_t batch_bytes;
  Instant end;
  std::atomic<std::uint64_t> batches{0};
  std::atomic<bool> failed{false};
};

Result<void> Round(const Run& run, std::uint64_t part, Rng& rng) {
  const auto count = static_cast<std::size_t>(FLAGS_batch_size);
  std::byte* const written = run.session.buffer + 2 * part * run.batch_bytes;
  std::byte* const read = written + run.batch_bytes;
  for (std::uint64_t offset = 0; offset < run.batch_bytes; offset += 8) {
    const std::uint64_t word = rng.Next();
    std::memcpy(written + offset, &word, std::min<std::uint64_t>(8, run.batch_bytes - offset));
  }
  std::vector<TransferRequest> requests(count);
  for (const Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t offset = i * FLAGS_block_size;
      requests[i] = {.opcode = opcode,
                     .local = (opcode == Opcode::kWrite ? written : read) + offset,
                     .segment = run.session.target,
                     .remote_address = run.session.target_address + part * run.batch_bytes + offset,
                     .length_bytes = FLAGS_block_size};
    }
    MC_TRY(run.session.engine->Transfer(requests));
  }
  if (std::memcmp(written, read, run.batch_bytes) != 0) {
    return Fail(ErrorCode::kInternal,
                fmt::format("thread {}: what was read back differs from what was written", part));
  }
  return {};
}

void Repeat(Run& run, int thread) {
  const auto part = static_cast<std::uint64_t>(thread);
  Rng rng(part + 1);
  do {
    if (const auto equal = Round(run, part, rng); !equal) {
      fmt::print(stderr, "transfer_engine_validator: {}\n", equal.error().ToString());
      run.failed = true;
      return;
    }
    run.batches.fetch_add(1, std::memory_order_relaxed);
  } while (SteadyClock::Get().Now() < run.end && !run.failed.load(std::memory_order_relaxed));
}

Result<int> Validate(BenchSession& session) {
  MC_TRY(OpenTarget(session));
  const std::uint64_t bytes = static_cast<std::uint64_t>(FLAGS_batch_size) * FLAGS_block_size;
  const auto parts = static_cast<std::uint64_t>(FLAGS_threads);
  if (FLAGS_buffer_size / bytes < 2 * parts) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("two batches of {} bytes for each of {} threads do not fit into "
                            "--buffer_size={}",
                            bytes, parts, FLAGS_buffer_size));
  }
  const Instant start = SteadyClock::Get().Now();
  Run run{.session = session,
          .batch_bytes = bytes,
          .end = start + std::chrono::seconds(FLAGS_duration)};
  {
    std::vector<Thread> threads;
    for (int i = 0; i < FLAGS_threads; ++i) {
      MC_TRY_ASSIGN(Thread thread, Thread::Start("validate", [&run, i] { Repeat(run, i); }));
      threads.push_back(std::move(thread));
    }
  }
  if (run.failed) {
    return 1;
  }
  const double seconds = std::chrono::duration<double>(SteadyClock::Get().Now() - start).count();
  const std::uint64_t batches = run.batches.load();
  const double moved = 2 * static_cast<double>(batches) * static_cast<double>(bytes);
  fmt::print(stderr,
             "Test completed: {} batches of {} bytes written, read back and equal by {} threads, "
             "{}\n",
             batches, bytes, parts, ThroughputText(moved / seconds));
  return 0;
}

Result<int> RunValidator(int argc, char** argv) {
  MC_TRY(ParseBenchFlags(argc, argv, "Proves that the transfer engine moves bytes unharmed"));
  MC_TRY_ASSIGN(BenchSession session, StartSession());
  return FLAGS_mode == "target" ? ServeTarget(session) : Validate(session);
}

}  // namespace
}  // namespace mooncake::transfer

int main(int argc, char** argv) {
  const auto code = mooncake::transfer::RunValidator(argc, argv);
  if (!code) {
    fmt::print(stderr, "transfer_engine_validator: {}\n", code.error().ToString());
    return 1;
  }
  return *code;
}
