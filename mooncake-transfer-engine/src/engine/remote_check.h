// Whether what a peer touches must lie in memory that was registered for peers; the setting
// MC_ENFORCE_REMOTE_ACCESSIBLE.
#pragma once

#include <cstdint>

namespace mooncake::transfer {

// Held to on both sides of a connection: towards peers before a request is sent, and from peers
// before one is served.
enum class RemoteCheck : std::uint8_t {
  kAuto,    // Between our own engines. Published ones neither ask for it nor expect it.
  kAlways,  // MC_ENFORCE_REMOTE_ACCESSIBLE=1
  kNever,   // =0: all that is registered may be touched, and the peer decides for itself.
};

}  // namespace mooncake::transfer
