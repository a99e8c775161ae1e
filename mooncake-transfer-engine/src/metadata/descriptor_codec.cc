#include "mooncake-transfer-engine/src/metadata/descriptor_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "mooncake-transfer-engine/src/metadata/json_reader.h"

namespace mooncake::transfer {
namespace {

using nlohmann::json;

constexpr std::uint32_t kExtensionVersion = 1;
constexpr std::uint64_t kU64Max = std::numeric_limits<std::uint64_t>::max();

// The document's beginning. Written without a tree of values, for there may be thousands of buffers
// and a server's thread may be the one that writes.
std::string EncodeBuffers(const std::vector<BufferDescriptor>& buffers) {
  std::string text = R"({"buffers":[)";
  std::string_view name;  // Usually the same for all.
  std::string quoted_name = "\"\"";
  for (const BufferDescriptor& buffer : buffers) {
    if (buffer.name != name) {
      name = buffer.name;
      quoted_name = WriteJson(name);
    }
    fmt::format_to(std::back_inserter(text), R"({}{{"addr":{},"length":{},"name":{}}})",
                   text.back() == '[' ? "" : ",", buffer.address, buffer.length_bytes, quoted_name);
  }
  text += ']';
  return text;
}

json EncodeExtension(const SegmentDescriptor& descriptor) {
  const PeerExtension& extension = *descriptor.extension;
  json shared = json::array();
  for (std::size_t i = 0; i < descriptor.buffers.size(); ++i) {
    if (const auto& memory = descriptor.buffers[i].shared) {
      shared.push_back({{"buffer", i}, {"fd", memory->fd}, {"offset", memory->offset_bytes}});
    }
  }
  json encoded = {
      {"host_id", extension.host_id}, {"incarnation", extension.incarnation},
      {"nonce", extension.nonce},     {"nonce_address", extension.nonce_address},
      {"pid", extension.pid},         {"pid_namespace", extension.pid_namespace},
      {"shared", std::move(shared)},  {"tcp_extension_version", extension.tcp_extension_version},
      {"version", extension.version}};
  if (extension.nonce_fd >= 0) {
    encoded["nonce_fd"] = extension.nonce_fd;
  }
  return encoded;
}

// Which of the announced protocols to speak.
Result<std::string> ReadProtocol(const json& document) {
  const auto found = document.find("protocol");
  if (found != document.end() && found->is_string() &&
      !found->get_ref<const std::string&>().empty()) {
    return found->get<std::string>();
  }
  if (found == document.end() || !found->is_array() || found->empty() ||
      !std::ranges::all_of(*found, [](const json& one) { return one.is_string(); })) {
    return Fail(ErrorCode::kMalformed, "\"protocol\" must be a string or a list of strings");
  }
  const bool has_tcp = std::ranges::any_of(
      *found, [](const json& one) { return one.get_ref<const std::string&>() == "tcp"; });
  return has_tcp ? std::string("tcp") : found->front().get<std::string>();
}

Result<BufferDescriptor> ReadBuffer(const json& entry) {
  BufferDescriptor buffer;
  MC_TRY_ASSIGN(buffer.name, ReadString(entry, "name", ""));
  MC_TRY_ASSIGN(buffer.address, ReadUnsigned(entry, "addr", 0, kU64Max));
  MC_TRY_ASSIGN(buffer.length_bytes, ReadUnsigned(entry, "length", 0, kU64Max));
  if (buffer.name.empty() || buffer.address == 0 || buffer.length_bytes == 0) {
    return Fail(ErrorCode::kMalformed, "a buffer needs a name, an addr and a length");
  }
  if (buffer.length_bytes - 1 > kU64Max - buffer.address) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("the buffer at {:#x} of {} bytes ends beyond the address space",
                            buffer.address, buffer.length_bytes));
  }
  return buffer;
}

// `positions[i]` becomes the place in `out.buffers` of the document's buffer i, if it was taken.
Result<void> ReadBuffers(const json& document, SegmentDescriptor& out,
                         std::vector<std::optional<std::size_t>>& positions) {
  const auto found = document.find("buffers");
  if (found == document.end() || found->is_null()) {
    return {};
  }
  if (!found->is_array()) {
    return Fail(ErrorCode::kMalformed, "\"buffers\" must be a list");
  }
  positions.resize(found->size());
  out.buffers.reserve(found->size());
  for (std::size_t i = 0; i < found->size(); ++i) {
    const json& entry = (*found)[i];
    if (!entry.is_object()) {
      return Fail(ErrorCode::kMalformed, fmt::format("buffer {} must be an object", i));
    }
    // Only a descriptor with several protocols says which one a buffer belongs to.
    MC_TRY_ASSIGN(const std::string protocol, ReadString(entry, "protocol", out.protocol));
    if (protocol != out.protocol) {
      continue;
    }
    auto buffer = ReadBuffer(entry);
    if (!buffer) {
      return Fail(ErrorCode::kMalformed, fmt::format("buffer {}: {}", i, buffer.error().message));
    }
    positions[i] = out.buffers.size();
    out.buffers.push_back(std::move(*buffer));
  }
  return {};
}

Result<void> ReadShared(const json& extension, SegmentDescriptor& out,
                        const std::vector<std::optional<std::size_t>>& positions) {
  const auto found = extension.find("shared");
  if (found == extension.end() || found->is_null()) {
    return {};
  }
  if (!found->is_array()) {
    return Fail(ErrorCode::kMalformed, "\"mooncake_ext.shared\" must be a list");
  }
  for (const json& entry : *found) {
    if (!entry.is_object() || !entry.contains("buffer") || !entry.contains("fd")) {
      return Fail(ErrorCode::kMalformed, "an entry of \"mooncake_ext.shared\" needs buffer and fd");
    }
    MC_TRY_ASSIGN(const std::uint64_t buffer, ReadUnsigned(entry, "buffer", kU64Max, kU64Max));
    MC_TRY_ASSIGN(const std::uint64_t fd,
                  ReadUnsigned(entry, "fd", 0, std::numeric_limits<std::int32_t>::max()));
    MC_TRY_ASSIGN(const std::uint64_t offset, ReadUnsigned(entry, "offset", 0, kU64Max));
    if (buffer >= positions.size()) {
      return Fail(
          ErrorCode::kMalformed,
          fmt::format("\"mooncake_ext.shared\" names buffer {} of {}", buffer, positions.size()));
    }
    if (positions[buffer]) {
      out.buffers[*positions[buffer]].shared =
          SharedMemory{.fd = static_cast<std::int32_t>(fd), .offset_bytes = offset};
    }
  }
  return {};
}

Result<void> ReadExtension(const json& document, SegmentDescriptor& out,
                           const std::vector<std::optional<std::size_t>>& positions) {
  const auto found = document.find("mooncake_ext");
  if (found == document.end() || found->is_null()) {
    return {};
  }
  if (!found->is_object()) {
    return Fail(ErrorCode::kMalformed, "\"mooncake_ext\" must be an object");
  }
  constexpr std::uint64_t kU32Max = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t kI32Max = std::numeric_limits<std::int32_t>::max();
  MC_TRY_ASSIGN(const std::uint64_t version, ReadUnsigned(*found, "version", 0, kU32Max));
  if (version == 0) {
    return Fail(ErrorCode::kMalformed, "\"mooncake_ext.version\" must be 1 or more");
  }
  if (version > kExtensionVersion) {
    return {};
  }
  PeerExtension extension;
  extension.version = kExtensionVersion;
  MC_TRY_ASSIGN(extension.host_id, ReadString(*found, "host_id", ""));
  MC_TRY_ASSIGN(extension.pid_namespace, ReadUnsigned(*found, "pid_namespace", 0, kU64Max));
  MC_TRY_ASSIGN(const std::uint64_t pid, ReadUnsigned(*found, "pid", 0, kI32Max));
  extension.pid = static_cast<std::int32_t>(pid);
  MC_TRY_ASSIGN(extension.nonce, ReadUnsigned(*found, "nonce", 0, kU64Max));
  MC_TRY_ASSIGN(extension.nonce_address, ReadUnsigned(*found, "nonce_address", 0, kU64Max));
  if (found->contains("nonce_fd")) {
    MC_TRY_ASSIGN(const std::uint64_t fd, ReadUnsigned(*found, "nonce_fd", 0, kI32Max));
    extension.nonce_fd = static_cast<std::int32_t>(fd);
  }
  MC_TRY_ASSIGN(extension.incarnation, ReadUnsigned(*found, "incarnation", 0, kU64Max));
  MC_TRY_ASSIGN(const std::uint64_t tcp, ReadUnsigned(*found, "tcp_extension_version", 0, kU32Max));
  extension.tcp_extension_version = static_cast<std::uint32_t>(tcp);
  out.extension = std::move(extension);
  return ReadShared(*found, out, positions);
}

Result<SegmentDescriptor> ReadDescriptor(const json& document) {
  SegmentDescriptor out;
  MC_TRY_ASSIGN(out.name, ReadString(document, "name", ""));
  if (out.name.empty()) {
    return Fail(ErrorCode::kMalformed, "the segment has no name");
  }
  MC_TRY_ASSIGN(out.protocol, ReadProtocol(document));
  if (out.protocol == "cxl" || out.protocol == "nvmeof") {
    return Fail(
        ErrorCode::kNotSupported,
        fmt::format("segment {} is reached by {}, which is not built", out.name, out.protocol));
  }
  MC_TRY_ASSIGN(out.tcp_data_host, ReadString(document, "tcp_data_host", ""));
  MC_TRY_ASSIGN(const std::uint64_t port, ReadUnsigned(document, "tcp_data_port", 0, 65535));
  out.tcp_data_port = static_cast<std::uint16_t>(port);
  MC_TRY_ASSIGN(const std::uint64_t version,
                ReadUnsigned(document, "tcp_proto_version", 1, kU64Max));
  out.tcp_proto_version =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(version, 1, kMaxTcpProtoVersion));
  MC_TRY_ASSIGN(out.rdma_server_name, ReadString(document, "rdma_server_name", ""));
  MC_TRY_ASSIGN(out.timestamp, ReadString(document, "timestamp", ""));
  std::vector<std::optional<std::size_t>> positions;
  MC_TRY(ReadBuffers(document, out, positions));
  MC_TRY(ReadExtension(document, out, positions));
  return out;
}

}  // namespace

std::string EncodeDescriptor(const SegmentDescriptor& descriptor) {
  json document = {{"name", descriptor.name},
                   {"protocol", descriptor.protocol},
                   {"rdma_server_name", descriptor.rdma_server_name},
                   {"tcp_data_port", descriptor.tcp_data_port},
                   {"tcp_proto_version", descriptor.tcp_proto_version},
                   {"timestamp", descriptor.timestamp}};
  if (!descriptor.tcp_data_host.empty()) {
    document["tcp_data_host"] = descriptor.tcp_data_host;
  }
  if (descriptor.extension) {
    document["mooncake_ext"] = EncodeExtension(descriptor);
  }
  // "buffers" sorts before all other keys.
  return EncodeBuffers(descriptor.buffers) + ',' + WriteJson(document).substr(1);
}

Result<SegmentDescriptor> DecodeDescriptor(std::string_view text, std::size_t max_bytes) {
  MC_TRY_ASSIGN(const json document, ReadJsonObject(text, max_bytes, "segment descriptor"));
  auto descriptor = ReadDescriptor(document);
  if (!descriptor) {
    return Fail(descriptor.error().code,
                fmt::format("read segment descriptor: {}", descriptor.error().message));
  }
  return descriptor;
}

}  // namespace mooncake::transfer
