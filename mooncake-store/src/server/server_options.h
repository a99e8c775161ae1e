// What a master server is started with.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/master/options.h"
#include "mooncake-store/src/server/settings.h"

namespace mooncake::store {

struct ServerOptions {
  MasterOptions master;  // Seed and versions are set when the server starts.
  EvictionPolicyKind eviction_policy = EvictionPolicyKind::kHdi;

  std::string rpc_host = "0.0.0.0";
  std::string rpc_interface;  // A network interface; its address wins over rpc_host. Empty = none.
  std::uint16_t rpc_port = 50051;  // 0 = any free one.
  std::size_t rpc_threads = 1;

  std::string admin_host = "0.0.0.0";
  std::uint16_t admin_port = 9003;

  bool serve_metadata = false;  // The engine's metadata over HTTP, in this process.
  std::string metadata_host = "0.0.0.0";
  std::uint16_t metadata_port = 8080;
  bool clean_metadata = false;  // When a client is lost; needs serve_metadata.

  bool report_metrics = true;  // A line in the log every ten seconds in which something changed.
};

// `cores`: how many this process may run on.
//
// Errors: kInvalidArgument for settings that contradict each other; names both.
[[nodiscard]] Result<ServerOptions> ServerOptionsFrom(const Settings& settings, std::size_t cores);

}  // namespace mooncake::store
