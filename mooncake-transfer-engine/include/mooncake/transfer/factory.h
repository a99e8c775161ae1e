// Makes an engine out of what this machine and the environment offer.
//
// Thread-safety: free functions, from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

namespace mooncake::transfer {

// What a user says to get an engine; the rest comes from MC_* variables.
struct EngineSettings {
  std::string local_name;  // "host", "host:port" or empty.
  std::string metadata;    // "P2PHANDSHAKE", "http://host:8080/metadata", ...
  // As the published package takes it: a wish that changes nothing where only one wire is there.
  std::string protocol;
  std::string devices;  // NIC allow-list, by commas; empty or "auto-discovery" = all.
  // Where to listen under MC_LEGACY_RPC_PORT_BINDING, when `local_name` has no port. 0 = any port.
  std::uint64_t rpc_port = 0;
};

// A started engine with its transports, its metadata and one reactor of its own. MC_FORCE_TCP
// leaves only tcp, else the way is found from the peer's descriptor.
//
// Errors: kInvalidArgument naming the setting or variable that is wrong; those of the metadata.
[[nodiscard]] Result<std::unique_ptr<Engine>> CreateEngine(const EngineSettings& settings);

}  // namespace mooncake::transfer
