// What a store client is told once, at set-up.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/uuid.h"

namespace mooncake::store {

struct ClientOptions {
  Uuid client;          // Constant for the life of the client; never zero.
  std::string tenant;   // Empty = "default".
  std::string host_id;  // Of this machine as segments name it; empty = unknown.

  bool descriptor_cache = true;                    // MC_STORE_DESCRIPTOR_CACHE
  std::uint32_t descriptor_cache_entries = 65536;  // About 100 bytes each, and the key.

  // How long a put that finds the store full asks again; zero = not at all. MC_STORE_PUT_WAIT_MS
  Duration put_wait = std::chrono::milliseconds(100);
  // How long one RPC may take. MC_RPC_TIMEOUT_MS
  Duration rpc_timeout = std::chrono::seconds(30);
  // How long a call keeps trying while the master does not answer.
  Duration master_patience = std::chrono::seconds(10);

  // Windows that large calls are cut into: bounds of memory, and of what one lease has to cover.
  std::uint32_t window_keys = 1024;
  std::uint64_t window_bytes = 64ULL << 20;  // A larger object is a window of its own.

  Duration heartbeat_interval = std::chrono::seconds(1);
  Duration heartbeat_timeout = std::chrono::seconds(1);
};

}  // namespace mooncake::store
