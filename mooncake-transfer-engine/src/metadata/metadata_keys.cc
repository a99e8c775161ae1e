#include "mooncake-transfer-engine/src/metadata/metadata_keys.h"

#include <fmt/format.h>

#include "mooncake-transfer-engine/src/metadata/json_reader.h"

namespace mooncake::transfer {
namespace {

constexpr std::size_t kMaxRpcMetaBytes = std::size_t{64} << 10;

std::string Prefix(std::string_view cluster_id) {
  return cluster_id.empty() ? "mooncake/" : fmt::format("mooncake/{}/", cluster_id);
}

}  // namespace

std::string SegmentKey(std::string_view cluster_id, std::string_view name) {
  return fmt::format("{}{}{}", Prefix(cluster_id), name.contains('/') ? "" : "ram/", name);
}

std::string RpcMetaKey(std::string_view cluster_id, std::string_view name) {
  return fmt::format("{}rpc_meta/{}", Prefix(cluster_id), name);
}

std::string EncodeRpcMeta(const RpcMeta& meta) {
  return WriteJson({{"ip_or_host_name", meta.host}, {"rpc_port", meta.port}});
}

Result<RpcMeta> DecodeRpcMeta(std::string_view json) {
  MC_TRY_ASSIGN(const nlohmann::json document, ReadJsonObject(json, kMaxRpcMetaBytes, "rpc_meta"));
  RpcMeta meta;
  MC_TRY_ASSIGN(meta.host, ReadString(document, "ip_or_host_name", ""));
  MC_TRY_ASSIGN(const std::uint64_t port, ReadUnsigned(document, "rpc_port", 0, 65535));
  meta.port = static_cast<std::uint16_t>(port);
  if (meta.host.empty() || meta.port == 0) {
    return Fail(ErrorCode::kMalformed, "read rpc_meta: ip_or_host_name and rpc_port are needed");
  }
  return meta;
}

}  // namespace mooncake::transfer
