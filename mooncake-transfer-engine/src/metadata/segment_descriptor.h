// What a process offers to others, as it is published: the JSON of
// docs/formats/segment_descriptor.md.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mooncake::transfer {

// Where a registered buffer's pages come from, as far as a peer on the same host can use it.
struct SharedMemory {
  std::int32_t fd = -1;            // Number of a sealed memfd in the owner's process.
  std::uint64_t offset_bytes = 0;  // Of the buffer's first byte in the file.
};

struct BufferDescriptor {
  std::string name;  // The segment's own name, whatever location was given (observed on the wire).
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::optional<SharedMemory> shared;  // Only in the extension.
};

// What only our own peers read: one object "mooncake_ext". Others ignore it.
struct PeerExtension {
  std::uint32_t version = 1;
  std::string host_id;  // The kernel's boot id: equal means the same running kernel.
  std::uint64_t pid_namespace = 0;
  std::int32_t pid = 0;
  // `nonce` stands at `nonce_address` in the owner's memory: who reads it there talks to the right
  // process.
  std::uint64_t nonce = 0;
  std::uint64_t nonce_address = 0;
  std::int32_t nonce_fd = -1;     // Of the owner's memfd that begins there (presence.h); -1 = none.
  std::uint64_t incarnation = 0;  // Differs after every start under the same name.
  std::uint32_t tcp_extension_version = 0;  // 0 = data port speaks v1 and v2 only.
};

struct SegmentDescriptor {
  std::string name;
  std::string protocol = "tcp";
  std::vector<BufferDescriptor> buffers;
  std::string tcp_data_host;  // Empty = absent: the reader uses the host it dialled.
  std::uint16_t tcp_data_port = 0;
  std::uint32_t tcp_proto_version = 1;  // Absent on the wire means 1.
  std::string rdma_server_name;
  std::string timestamp;  // "YYYY-MM-DD HH:MM:SS.uuuuuu"; ignored when comparing.
  std::optional<PeerExtension> extension;
};

}  // namespace mooncake::transfer
