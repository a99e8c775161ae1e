#include "mooncake-transfer-engine/tools/bench_session.h"

#include <fmt/ranges.h>
#include <gflags/gflags.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/end_signals.h"
#include "mooncake-common/src/base/glog_flags.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/factory.h"
#include "mooncake-transfer-engine/tools/bench_flags.h"

namespace mooncake::transfer {
namespace {

// Those of the published tool. All that this machine does not offer run over what it does.
constexpr std::array<std::string_view, 9> kProtocols = {
    "rdma", "barex", "tcp", "efa", "nvlink", "musa", "nvlink_intra", "hip", "sunrise_link"};

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array kUnits = {Unit{"GB", 1e9}, Unit{"GiB", 1073741824.0}, Unit{"Gb", 1e9 / 8},
                               Unit{"MB", 1e6}, Unit{"MiB", 1048576.0},    Unit{"Mb", 1e6 / 8},
                               Unit{"KB", 1e3}, Unit{"KiB", 1024.0},       Unit{"Kb", 1e3 / 8}};

// Flags for hardware that no transport of this build reaches.
constexpr std::array kOfHardware = {"device_name", "nic_priority_matrix", "auto_discovery",
                                    "use_vram", "gpu_id"};

std::string OwnHostName() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace

Result<void> ParseBenchFlags(int argc, char** argv, const char* usage) {
  gflags::SetUsageMessage(usage);
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  MC_TRY(InitLoggingFromEnv());
  MC_TRY(ApplyLogFlags());
  for (const char* flag : kOfHardware) {
    if (!gflags::GetCommandLineFlagInfoOrDie(flag).is_default) {
      MC_LOG_WARNING("--{} is without effect: this build has no transport for such devices", flag);
    }
  }
  return {};
}

std::string ThroughputText(double bytes_per_second) {
  const auto* const unit = std::ranges::find(kUnits, FLAGS_report_unit, &Unit::name);
  MC_CHECK(unit != kUnits.end());  // StartSession() has refused others.
  return fmt::format("throughput {:.{}f} {}/s", bytes_per_second / unit->bytes,
                     FLAGS_report_precision, unit->name);
}

Result<BenchSession> StartSession() {
  if (FLAGS_block_size == 0 || FLAGS_batch_size <= 0 || FLAGS_threads <= 0 || FLAGS_duration <= 0) {
    return Fail(ErrorCode::kInvalidArgument,
                "--block_size, --batch_size, --threads and --duration must be positive");
  }
  if (FLAGS_buffer_size < FLAGS_block_size) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--buffer_size={} is smaller than --block_size={}", FLAGS_buffer_size,
                            FLAGS_block_size));
  }
  if (std::ranges::find(kProtocols, FLAGS_protocol) == kProtocols.end()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--protocol={} is not known: use one of {}", FLAGS_protocol,
                            fmt::join(kProtocols, ", ")));
  }
  if (std::ranges::find(kUnits, FLAGS_report_unit, &Unit::name) == kUnits.end()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--report_unit={}: use GB, GiB, Gb, MB, MiB, Mb, KB, KiB or Kb",
                            FLAGS_report_unit));
  }
  if (FLAGS_mode != "initiator" && FLAGS_mode != "target") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--mode={}: use initiator or target", FLAGS_mode));
  }
  EngineSettings settings;
  settings.local_name = FLAGS_local_server_name.empty() ? OwnHostName() : FLAGS_local_server_name;
  settings.metadata = FLAGS_metadata_server;
  settings.protocol = FLAGS_protocol;
  settings.devices = FLAGS_device_name;
  BenchSession session;
  MC_TRY_ASSIGN(session.engine, CreateEngine(settings));
  MC_TRY_ASSIGN(void* const memory,
                session.engine->AllocateManaged(FLAGS_buffer_size, {.dedicated = true}));
  session.buffer = static_cast<std::byte*>(memory);
  return session;
}

Result<void> OpenTarget(BenchSession& session) {
  if (FLAGS_segment_id.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "an initiator needs --segment_id, the name that the target prints");
  }
  MC_TRY_ASSIGN(session.target, session.engine->OpenSegment(FLAGS_segment_id));
  MC_TRY_ASSIGN(const auto descriptor, session.engine->Descriptor(session.target));
  if (descriptor->buffers.empty() || descriptor->buffers.front().length_bytes < FLAGS_buffer_size) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("segment {} offers no buffer of {} bytes; give both sides the same "
                            "--buffer_size",
                            FLAGS_segment_id, FLAGS_buffer_size));
  }
  session.target_address = descriptor->buffers.front().address;
  return {};
}

int ServeTarget(const BenchSession& session) {
  const EndSignals ends = EndSignals::Block();
  fmt::print(stderr, "Transfer Engine RPC using {}, listening on {}\n",
             FLAGS_metadata_server == "P2PHANDSHAKE" ? "P2P handshake" : FLAGS_metadata_server,
             session.engine->name());
  (void)ends.Wait();
  return 0;
}

}  // namespace mooncake::transfer
