// The bytes on the data port: docs/formats/tcp.md.
//
// Thread-safety: values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake::transfer {

enum class TcpProtocol : std::uint8_t { kV1, kV2, kExtended };

// What a descriptor says in tcp_extension_version.
inline constexpr std::uint32_t kTcpExtensionVersion = 1;

inline constexpr std::size_t kTcpRequestBytes = 24;  // The head of every request.
inline constexpr std::size_t kTcpExtentBytes = 16;
inline constexpr std::size_t kTcpStatusBytes = 8;  // v2.
inline constexpr std::uint32_t kTcpMaxExtents = 1024;
inline constexpr std::uint64_t kTcpMaxFrameBytes = std::uint64_t{64} << 20;  // Payload.

struct TcpExtent {
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
};

// A decoded head. v1 and v2 carry one extent in it; of the extension they follow.
struct TcpRequest {
  TcpProtocol protocol = TcpProtocol::kV1;
  Opcode opcode = Opcode::kRead;
  TcpExtent extent;                // v1, v2.
  std::uint64_t id = 0;            // Extension.
  std::uint32_t extent_count = 1;  // 1..kTcpMaxExtents.
};

// Errors: kMalformed for an unknown opcode or an extension head that is not one.
[[nodiscard]] Result<TcpRequest> DecodeTcpRequest(
    std::span<const std::byte, kTcpRequestBytes> head);
[[nodiscard]] std::array<std::byte, kTcpRequestBytes> EncodeTcpRequest(const TcpRequest& request);

[[nodiscard]] TcpExtent DecodeTcpExtent(std::span<const std::byte, kTcpExtentBytes> bytes);
[[nodiscard]] std::array<std::byte, kTcpExtentBytes> EncodeTcpExtent(const TcpExtent& extent);

// v2: whether the range was accepted. Errors: kMalformed.
[[nodiscard]] Result<bool> DecodeTcpStatus(std::span<const std::byte, kTcpStatusBytes> bytes);
[[nodiscard]] std::array<std::byte, kTcpStatusBytes> EncodeTcpStatus(bool accepted);

// The extension's reply head: its size is fixed by the request, so that its payload can be received
// in place together with it.
[[nodiscard]] constexpr std::size_t TcpReplyBytes(std::uint32_t extent_count) {
  return 16 + (extent_count + 63) / 64 * 8;
}
// `rejected[i]` = extent i was refused.
[[nodiscard]] std::vector<std::byte> EncodeTcpReply(std::uint64_t id,
                                                    const std::vector<bool>& rejected);
// Returns the indexes of the rejected extents, ascending.
//
// Errors: kMalformed when it is no reply to request `id` with `extent_count` extents.
[[nodiscard]] Result<std::vector<std::uint32_t>> DecodeTcpReply(std::span<const std::byte> bytes,
                                                                std::uint64_t id,
                                                                std::uint32_t extent_count);

}  // namespace mooncake::transfer
