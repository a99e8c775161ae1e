// Every environment variable that this code reads: name, type, unit, default, range, meaning. The
// reference for users is printed from this table; env.h reads by it and by nothing else.
//
// To add one: a row here; then EnvFlag("MC_...") and its siblings compile. A name that is accepted
// and does nothing stands in env_unread.cc instead, so that its users are told.
//
// Thread-safety: constants.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace mooncake {

enum class EnvType : std::uint8_t {
  kFlag,      // 1/0, true/false, yes/no, on/off, enable/disable.
  kAutoFlag,  // A flag, or "auto": the program decides.
  kInteger,   // From `min` to `max`.
  kBytes,     // "65536" or "64kb"; from `min` to `max` bytes.
  kDuration,  // "500ms", "10s", "2m", "1h", or a bare number in `unit`; from `min` to `max` of
              // `unit`.
  kTimeout,   // A duration, or a negative number: no limit.
  kChoice,    // One of `choices`, in any case.
  kText,
};

struct EnvVariable {
  std::string_view name;
  EnvType type;
  std::string_view fallback;  // What holds when unset; written as a value would be. "" = nothing.
  std::string_view meaning;
  std::string_view unit = {};
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
  std::string_view choices = {};  // "a|b|c"
  std::string_view alias = {};    // Read when `name` is not set.
};

inline constexpr std::int64_t kEnvMaxSeconds = 1'000'000'000;

// Sorted by name; env_test.cc says so when not.
inline constexpr auto kEnvTable = std::to_array<EnvVariable>({
    {.name = "MC_DISABLE_METACACHE",
     .type = EnvType::kFlag,
     .fallback = "0",
     .meaning = "ask the metadata server for a peer's descriptor at every opening"},
    {.name = "MC_ENFORCE_REMOTE_ACCESSIBLE",
     .type = EnvType::kAutoFlag,
     .fallback = "auto",
     .meaning = "keep peers out of buffers registered as not remotely accessible, and the own "
                "requests out of what peers do not offer; auto: between engines that know the "
                "attribute"},
    {.name = "MC_FORCE_TCP",
     .type = EnvType::kFlag,
     .fallback = "0",
     .meaning = "move all data over tcp, also within one host"},
    {.name = "MC_HANDSHAKE_CONNECT_TIMEOUT",
     .type = EnvType::kDuration,
     .fallback = "5",
     .meaning = "how long a handshake waits for its connection",
     .unit = "s",
     .min = 1,
     .max = 3600},
    {.name = "MC_HANDSHAKE_MAX_LENGTH",
     .type = EnvType::kBytes,
     .fallback = "1mb",
     .meaning = "longest handshake message accepted",
     .unit = "bytes",
     .min = std::int64_t{1} << 20,
     .max = std::int64_t{128} << 20},
    {.name = "MC_HANDSHAKE_PORT",
     .type = EnvType::kInteger,
     .fallback = "12001",
     .meaning = "port of a peer whose name has none",
     .unit = "port",
     .min = 1,
     .max = 65535},
    {.name = "MC_LEGACY_RPC_PORT_BINDING",
     .type = EnvType::kFlag,
     .fallback = "0",
     .meaning = "listen for handshakes on the port of the local server name, on all addresses"},
    {.name = "MC_LOG_DIR",
     .type = EnvType::kText,
     .fallback = "",
     .meaning = "folder for log files; unset: standard error only"},
    {.name = "MC_LOG_LEVEL",
     .type = EnvType::kChoice,
     .fallback = "INFO",
     .meaning = "lines below this level are dropped",
     .choices = "TRACE|INFO|WARNING|ERROR"},
    {.name = "MC_MAX_RPC_PORT",
     .type = EnvType::kInteger,
     .fallback = "17000",
     .meaning = "upper end of the range from which the handshake port is drawn",
     .unit = "port",
     .min = 1024,
     .max = 65535,
     .alias = "MC_MAX_PRC_PORT"},
    {.name = "MC_METADATA_CLUSTER_ID",
     .type = EnvType::kText,
     .fallback = "",
     .meaning = "keeps clusters apart that share a metadata server: a prefix of all keys"},
    {.name = "MC_MIN_RPC_PORT",
     .type = EnvType::kInteger,
     .fallback = "15000",
     .meaning = "lower end of the range from which the handshake port is drawn",
     .unit = "port",
     .min = 1024,
     .max = 65535,
     .alias = "MC_MIN_PRC_PORT"},
    {.name = "MC_RETRY_CNT",
     .type = EnvType::kInteger,
     .fallback = "9",
     .meaning = "times that a failed slice is sent again before its task fails",
     .min = 0,
     .max = 127},
    {.name = "MC_RPC_TIMEOUT_MS",
     .type = EnvType::kTimeout,
     .fallback = "30000",
     .meaning = "how long a call to the master may take; negative: no limit",
     .unit = "ms",
     .max = kEnvMaxSeconds},
    {.name = "MC_SLICE_TIMEOUT",
     .type = EnvType::kTimeout,
     .fallback = "-1",
     .meaning = "a transfer fails after standing still for so long, if that is shorter than "
                "MC_TRANSFER_TIMEOUT; negative: that one alone holds",
     .unit = "s",
     .max = kEnvMaxSeconds},
    {.name = "MC_STORE_CLIENT_MAX_PORT",
     .type = EnvType::kInteger,
     .fallback = "14300",
     .meaning = "upper end of the range from which a store client's port is drawn",
     .unit = "port",
     .min = 1024,
     .max = 65535},
    {.name = "MC_STORE_CLIENT_MIN_PORT",
     .type = EnvType::kInteger,
     .fallback = "12300",
     .meaning = "lower end of the range from which a store client's port is drawn",
     .unit = "port",
     .min = 1024,
     .max = 65535},
    {.name = "MC_STORE_DESCRIPTOR_CACHE",
     .type = EnvType::kFlag,
     .fallback = "1",
     .meaning = "serve repeated gets of a key from its lease without asking the master"},
    {.name = "MC_STORE_HOST_ID",
     .type = EnvType::kText,
     .fallback = "",
     .meaning = "name of this host for placement near the writer, equal for all its containers; "
                "unset: the host part of local_hostname"},
    {.name = "MC_STORE_PUT_WAIT_MS",
     .type = EnvType::kDuration,
     .fallback = "100",
     .meaning = "how long a put waits for space when nothing may be evicted; 0: not at all",
     .unit = "ms",
     .max = kEnvMaxSeconds},
    {.name = "MC_TCP_BIND_ADDRESS",
     .type = EnvType::kText,
     .fallback = "",
     .meaning =
         "address that peers are told to dial; unset: the one that routes to them. All addresses "
         "are listened on"},
    {.name = "MC_TCP_LANES_PER_PEER",
     .type = EnvType::kInteger,
     .fallback = "4",
     .meaning = "connections kept open to one peer",
     .min = 1,
     .max = 16,
     .alias = "MC_TCP_MAX_CONNECTIONS_PER_PEER"},
    {.name = "MC_TCP_PROTO",
     .type = EnvType::kChoice,
     .fallback = "",
     .meaning = "1: speak only the first version of the data protocol; unset: the newest both know",
     .choices = "1|2"},
    {.name = "MC_TRANSFER_TIMEOUT",
     .type = EnvType::kDuration,
     .fallback = "30",
     .meaning = "a synchronous transfer fails after standing still for so long",
     .unit = "s",
     .min = 5,
     .max = kEnvMaxSeconds},
    {.name = "MC_USE_IPV6",
     .type = EnvType::kFlag,
     .fallback = "0",
     .meaning = "prefer IPv6 where the host name leaves the choice"},
});

}  // namespace mooncake
