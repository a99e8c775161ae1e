// Measures reads or writes between two processes: one runs with --mode=target, the other with
// --segment_id=<its name>. The last line of an initiator is "Test completed: duration X, batch
// count N, throughput Y GB/s" on standard error.

#include <fmt/core.h>
#include <gflags/gflags.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-transfer-engine/tools/bench_flags.h"
#include "mooncake-transfer-engine/tools/bench_session.h"

DEFINE_string(operation, "read", "read | write");
DEFINE_string(backend, "classic", "classic | tent: one engine, which has the abilities of both");
DEFINE_bool(init_mem, true, "touch the buffer before measuring");

namespace mooncake::transfer {
namespace {

struct Run {
  const BenchSession& session;
  Opcode opcode;
  Instant end;
  std::atomic<std::uint64_t> batches{0};
  std::atomic<bool> failed{false};
};

// One thread's batches: each thread has its own part of the buffers, as far as they are large
// enough.
void Submit(Run& run, int thread) {
  const std::uint64_t blocks = FLAGS_buffer_size / FLAGS_block_size;
  std::vector<TransferRequest> requests(static_cast<std::size_t>(FLAGS_batch_size));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::uint64_t block = (static_cast<std::uint64_t>(thread) * requests.size() + i) % blocks;
    requests[i] = {.opcode = run.opcode,
                   .local = run.session.buffer + block * FLAGS_block_size,
                   .segment = run.session.target,
                   .remote_address = run.session.target_address + block * FLAGS_block_size,
                   .length_bytes = FLAGS_block_size};
  }
  while (SteadyClock::Get().Now() < run.end && !run.failed.load(std::memory_order_relaxed)) {
    if (const auto moved = run.session.engine->Transfer(requests); !moved) {
      fmt::print(stderr, "transfer_engine_bench: {}\n", moved.error().ToString());
      run.failed = true;
      return;
    }
    run.batches.fetch_add(1, std::memory_order_relaxed);
  }
}

Result<int> Measure(BenchSession& session) {
  MC_TRY(OpenTarget(session));
  if (FLAGS_init_mem) {
    for (std::uint64_t offset = 0; offset < FLAGS_buffer_size; offset += 4096) {
      session.buffer[offset] = std::byte{1};
    }
  }
  const Instant start = SteadyClock::Get().Now();
  Run run{.session = session,
          .opcode = FLAGS_operation == "read" ? Opcode::kRead : Opcode::kWrite,
          .end = start + std::chrono::seconds(FLAGS_duration)};
  {
    std::vector<Thread> threads;
    for (int i = 0; i < FLAGS_threads; ++i) {
      MC_TRY_ASSIGN(Thread thread, Thread::Start("bench", [&run, i] { Submit(run, i); }));
      threads.push_back(std::move(thread));
    }
  }
  const double seconds = std::chrono::duration<double>(SteadyClock::Get().Now() - start).count();
  const std::uint64_t batches = run.batches.load();
  const double bytes =
      static_cast<double>(batches) * FLAGS_batch_size * static_cast<double>(FLAGS_block_size);
  fmt::print(stderr, "Test completed: duration {:.2f}, batch count {}, {}\n", seconds, batches,
             ThroughputText(bytes / seconds));
  return run.failed ? 1 : 0;
}

Result<int> RunBench(int argc, char** argv) {
  MC_TRY(ParseBenchFlags(argc, argv, "Measures the transfer engine between two processes"));
  if (FLAGS_operation != "read" && FLAGS_operation != "write") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--operation={}: use read or write", FLAGS_operation));
  }
  if (FLAGS_backend != "classic" && FLAGS_backend != "tent") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--backend={}: use classic or tent", FLAGS_backend));
  }
  MC_TRY_ASSIGN(BenchSession session, StartSession());
  return FLAGS_mode == "target" ? ServeTarget(session) : Measure(session);
}

}  // namespace
}  // namespace mooncake::transfer

int main(int argc, char** argv) {
  const auto code = mooncake::transfer::RunBench(argc, argv);
  if (!code) {
    fmt::print(stderr, "transfer_engine_bench: {}\n", code.error().ToString());
    return 1;
  }
  return *code;
}
