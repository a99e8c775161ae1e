#include "mooncake-common/src/base/env_unread.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <vector>

#include "mooncake-common/src/base/env_table.h"
#include "mooncake-common/src/base/text.h"

namespace mooncake {
namespace {

// Mooncake's variables for what this build does not have (RDMA, accelerators, other metadata
// servers, checksums of objects), or decides by itself (pooling, threads, sizes of slices and
// queues). A trailing '*' stands for any ending.
constexpr auto kWithoutEffect = std::to_array<std::string_view>({
    "MC_AUTO_GID_MAX_RETRIES",
    "MC_CONN_PAUSE_TTL_MS",
    "MC_CUSTOM_TOPO_JSON",
    "MC_CXL_*",
    "MC_DISABLE_GPU_DIRECT_RDMA",
    "MC_DISABLE_HIP",
    "MC_DISABLE_MACA",
    "MC_DISABLE_MMAP_ARENA",
    "MC_DISABLE_MUSA",
    "MC_EFA_*",
    "MC_ENABLE_DEST_DEVICE_AFFINITY",
    "MC_ENABLE_HCA_PEER_AFFINITY",
    "MC_ENABLE_MNNVL",
    "MC_ENABLE_PARALLEL_REG_MR",
    "MC_ENDPOINT_STORE_TYPE",
    "MC_FILEREAD_WORKERS",
    "MC_FORCE_HCA",
    "MC_FORCE_MNNVL",
    "MC_FORCE_MUSA",
    "MC_FRAGMENT_RATIO",
    "MC_GID_INDEX",
    "MC_HANDSHAKE_LISTEN_BACKLOG",
    "MC_HIP_*",
    "MC_IB_*",
    "MC_INTRANODE_NVLINK",
    "MC_INTRA_NVLINK",
    "MC_LOG_RDMA_SLICE_AFFINITY",
    "MC_MACA_*",
    "MC_MAX_CONCURRENT_REG_MR",
    "MC_MAX_CQE_PER_CTX",
    "MC_MAX_EP_PER_CTX",
    "MC_MAX_INLINE",
    "MC_MAX_MR_SIZE",
    "MC_MAX_SGE",
    "MC_MAX_WR",
    "MC_MIN_REG_SIZE",
    "MC_MLX5_*",
    "MC_MMAP_ARENA_POOL_SIZE",
    "MC_MS_*",
    "MC_MTU",
    "MC_MUSA_*",
    "MC_NIC_PEER_AFFINITY",
    "MC_NUM_COMP_CHANNELS_PER_CTX",
    "MC_NUM_CQ_PER_CTX",
    "MC_NUM_QP_PER_EP",
    "MC_PATH_ROUNDROBIN",
    "MC_PKEY_INDEX",
    "MC_RDMA_*",
    "MC_REDIS_*",
    "MC_RPC_CLIENT_IO_THREADS",
    "MC_RPC_CONNECT_TIMEOUT_MS",
    "MC_RPC_PROTOCOL",
    "MC_SLICE_SIZE",
    "MC_STORE_CLIENT_METRIC",
    "MC_STORE_CLIENT_METRIC_BANDWIDTH",
    "MC_STORE_CLIENT_METRIC_INTERVAL",
    "MC_STORE_CLIENT_SETUP_RETRIES",
    "MC_STORE_CLUSTER_ID",
    "MC_STORE_HUGEPAGE_SIZE",
    "MC_STORE_LOCAL_HOT_*",
    "MC_STORE_MEMCPY",
    "MC_STORE_NUMA_SOCKET_ID",
    "MC_STORE_PINNED_RESTORE_ARENA_SIZE_BYTES",
    "MC_STORE_PIN_MEMORY_MAX_BYTES",
    "MC_STORE_REPLICA_SCORING",
    "MC_STORE_RPC_CLIENT_IO_THREADS",
    "MC_STORE_USE_HUGEPAGE",
    "MC_TANGRT_*",
    "MC_TCP_ADMISSION_TIMEOUT_MS",
    "MC_TCP_ENABLE_CONNECTION_POOL",
    "MC_TCP_MAX_PENDING_ADMISSIONS_PER_PEER",
    "MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER",
    "MC_TCP_SLICE_SIZE",
    "MC_TCP_STATUS_TIMEOUT_SEC",
    "MC_TENT_*",
    "MC_TE_FILTERS",
    "MC_TE_FILTERS_EXCLUDE",
    "MC_TE_METADATA_REFRESH_INTERVAL_SECONDS",
    "MC_TE_METRIC",
    "MC_TE_METRIC_INTERVAL_SECONDS",
    "MC_TE_RPC_CLIENT_IO_THREADS",
    "MC_TPU_*",
    "MC_TRACK_RDMA_POSTED_SLICES",
    "MC_UBSHMEM_*",
    "MC_USE_HIP_IPC",
    "MC_USE_NVLINK_IPC",
    "MC_USE_TENT",
    "MC_USE_TEV1",
    "MC_USE_UBSHMEM_IPC",
    "MC_WORKERS_PER_CTX",
    "MC_YLT_LOG_LEVEL",
    "MOONCAKE_STORE_CHECKSUM",
});

// Read by test programs and samples, for themselves.
constexpr auto kOfTests = std::to_array<std::string_view>({
    "MC_INITIATOR_*",
    "MC_LOCAL_SERVER_NAME",
    "MC_METADATA_SERVER",
    "MC_RUST_TE_*",
    "MC_SIM_*",
    "MC_TARGET_*",
    "MC_TEST_*",
});

bool Matches(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1))
                                : name == pattern;
}

// Levenshtein's distance: letters to insert, drop or change.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string_view Nearest(std::string_view name) {
  constexpr std::size_t kTypos = 3;  // More, and the guess would puzzle rather than help.
  constexpr std::size_t kNameMaxBytes = 100;
  std::string_view nearest;
  std::size_t best = kTypos + 1;
  if (name.size() <= kNameMaxBytes) {
    for (const EnvVariable& row : kEnvTable) {
      const std::size_t distance = Distance(name, row.name);
      if (distance < best) {
        best = distance;
        nearest = row.name;
      }
    }
  }
  return nearest;
}

}  // namespace

std::span<const std::string_view> EnvNamesWithoutEffect() { return kWithoutEffect; }

std::optional<std::string> UnreadEnvNote(std::string_view name) {
  const auto matches = [name](std::string_view pattern) { return Matches(pattern, name); };
  const auto read = [name](const EnvVariable& row) {
    return row.name == name || row.alias == name;
  };
  if (std::ranges::any_of(kWithoutEffect, matches)) {
    return fmt::format("environment variable {} has no effect in this build", name);
  }
  if (!name.starts_with("MC_") || std::ranges::any_of(kEnvTable, read) ||
      std::ranges::any_of(kOfTests, matches)) {
    return std::nullopt;
  }
  const std::string_view nearest = Nearest(name);
  return fmt::format("environment variable {} is unknown and ignored{}", Quote(name),
                     nearest.empty() ? std::string() : fmt::format("; is {} meant?", nearest));
}

}  // namespace mooncake
