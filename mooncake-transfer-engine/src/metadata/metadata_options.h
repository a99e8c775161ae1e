// What a metadata backend has to know. Every value comes from the caller; nothing here reads the
// environment.
//
// Thread-safety: a value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/net/port_range.h"
#include "mooncake-transfer-engine/src/metadata/handshake_codec.h"

namespace mooncake::transfer {

struct MetadataOptions {
  std::string connection;                   // "P2PHANDSHAKE", "http://host:8080/metadata".
  std::string local_server_name;            // As the user gave it: a host, host:port, or a label.
  std::string cluster_id;                   // MC_METADATA_CLUSTER_ID; empty = none.
  std::string bind_address;                 // MC_TCP_BIND_ADDRESS; empty = chosen.
  bool prefer_ipv6 = false;                 // MC_USE_IPV6.
  PortRange handshake_ports;                // MC_MIN_RPC_PORT, MC_MAX_RPC_PORT.
  std::uint16_t default_peer_port = 12001;  // MC_HANDSHAKE_PORT.
  std::size_t max_handshake_bytes = kDefaultMaxHandshakeBytes;   // MC_HANDSHAKE_MAX_LENGTH.
  Duration handshake_connect_timeout = std::chrono::seconds(5);  // MC_HANDSHAKE_CONNECT_TIMEOUT.
  // How soon a central store that lost everything is noticed.
  Duration check_interval = std::chrono::seconds(5);
};

}  // namespace mooncake::transfer
