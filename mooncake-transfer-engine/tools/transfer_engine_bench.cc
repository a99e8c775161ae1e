// Measures reads or writes between two processes: one runs with --mode=target, the other with
// --segment_id=<its name>. The last line of an initiator is "Test completed: duration X, batch
// count N, throughput Y GB/s" on standard error.

#include <fmt/core.h>
#include <gflags/gflags.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/thread.h"
#include "mooncake-transfer-engine/tools/bench_flags.h"
#include "mooncake-transfer-engine/tools/bench_session.h"

DEFINE_string(operation, "read", "read | write");
DEFINE_string(report_unit, "GB", "GB | GiB | Gb | MB | MiB | Mb | KB | KiB | Kb");
DEFINE_uint32(report_precision, 2, "digits after the point");
DEFINE_string(backend, "classic", "classic; the other one's abilities are this engine's own");
DEFINE_bool(use_vram, true, "buffers in device memory, where there is a device");
DEFINE_bool(init_mem, true, "touch the buffer before measuring");
DEFINE_int32(gpu_id, 0, "device of the buffer, where there is one");

namespace mooncake::transfer {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array kUnits = {Unit{"GB", 1e9}, Unit{"GiB", 1073741824.0}, Unit{"Gb", 1e9 / 8},
                               Unit{"MB", 1e6}, Unit{"MiB", 1048576.0},    Unit{"Mb", 1e6 / 8},
                               Unit{"KB", 1e3}, Unit{"KiB", 1024.0},       Unit{"Kb", 1e3 / 8}};

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
  double unit_bytes = kUnits[0].bytes;
  for (const Unit& unit : kUnits) {
    unit_bytes = unit.name == FLAGS_report_unit ? unit.bytes : unit_bytes;
  }
  fmt::print(stderr, "Test completed: duration {:.2f}, batch count {}, throughput {:.{}f} {}/s\n",
             seconds, batches, bytes / seconds / unit_bytes, FLAGS_report_precision,
             FLAGS_report_unit);
  return run.failed ? 1 : 0;
}

Result<int> RunBench() {
  bool known_unit = false;
  for (const Unit& unit : kUnits) {
    known_unit = known_unit || unit.name == FLAGS_report_unit;
  }
  if (!known_unit) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--report_unit={}: use GB, GiB, Gb, MB, MiB, Mb, KB, KiB or Kb",
                            FLAGS_report_unit));
  }
  if (FLAGS_operation != "read" && FLAGS_operation != "write") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--operation={}: use read or write", FLAGS_operation));
  }
  if (FLAGS_mode != "initiator" && FLAGS_mode != "target") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--mode={}: use initiator or target", FLAGS_mode));
  }
  MC_TRY_ASSIGN(BenchSession session, StartSession());
  return FLAGS_mode == "target" ? ServeTarget(session) : Measure(session);
}

}  // namespace
}  // namespace mooncake::transfer

int main(int argc, char** argv) {
  mooncake::transfer::ParseBenchFlags(argc, argv,
                                      "Measures the transfer engine between two processes");
  const auto code = mooncake::transfer::RunBench();
  if (!code) {
    fmt::print(stderr, "transfer_engine_bench: {}\n", code.error().ToString());
    return 1;
  }
  return *code;
}
