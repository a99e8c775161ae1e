// Keys and small values of the central store: docs/formats/metadata_keys.md.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/result.h"

namespace mooncake::transfer {

// "mooncake/ram/<name>"; a name that contains '/' stands without "ram/". `cluster_id` comes after
// "mooncake/" unless it is empty.
[[nodiscard]] std::string SegmentKey(std::string_view cluster_id, std::string_view name);

// "mooncake/rpc_meta/<name>".
[[nodiscard]] std::string RpcMetaKey(std::string_view cluster_id, std::string_view name);

// Where a segment's owner answers handshakes.
struct RpcMeta {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const RpcMeta&, const RpcMeta&) = default;
};

[[nodiscard]] std::string EncodeRpcMeta(const RpcMeta& meta);

// Errors: kMalformed, also for an empty host or port 0.
[[nodiscard]] Result<RpcMeta> DecodeRpcMeta(std::string_view json);

}  // namespace mooncake::transfer
