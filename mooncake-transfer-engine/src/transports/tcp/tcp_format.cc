#include "mooncake-transfer-engine/src/transports/tcp/tcp_format.h"

#include <fmt/core.h>

#include <bit>
#include <concepts>
#include <cstring>

namespace mooncake::transfer {
namespace {

constexpr std::uint8_t kV2Bit = 0x80;
constexpr std::uint8_t kExtendedBit = 0x40;
constexpr std::uint8_t kWriteBit = 0x01;
constexpr std::array<std::byte, 7> kExtendedMark{std::byte{'M'}, std::byte{'C'}, std::byte{'E'},
                                                 std::byte{'X'}, std::byte{'T'}, std::byte{'1'},
                                                 std::byte{0}};
constexpr std::uint32_t kStatusMark = 0x4D435456;  // "VTCM" in the order of the wire.
constexpr std::uint32_t kReplyMark = 0x5258434D;   // "MCXR" in the order of the wire.

template <std::unsigned_integral T>
void Put(std::byte* at, T value) {
  if constexpr (std::endian::native == std::endian::big) {
    value = std::byteswap(value);
  }
  std::memcpy(at, &value, sizeof value);
}

template <std::unsigned_integral T>
T Get(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) {
    value = std::byteswap(value);
  }
  return value;
}

}  // namespace

Result<TcpRequest> DecodeTcpRequest(std::span<const std::byte, kTcpRequestBytes> head) {
  const auto opcode = static_cast<std::uint8_t>(head[16]);
  TcpRequest request{.opcode = (opcode & kWriteBit) != 0 ? Opcode::kWrite : Opcode::kRead};
  if ((opcode & ~(kV2Bit | kWriteBit)) == 0) {
    request.protocol = (opcode & kV2Bit) != 0 ? TcpProtocol::kV2 : TcpProtocol::kV1;
    request.extent = {.address = Get<std::uint64_t>(&head[8]),
                      .length_bytes = Get<std::uint64_t>(&head[0])};
    return request;
  }
  if ((opcode & ~kWriteBit) != kExtendedBit) {
    return Fail(ErrorCode::kMalformed, fmt::format("unknown opcode {:#04x}", opcode));
  }
  request.protocol = TcpProtocol::kExtended;
  request.id = Get<std::uint64_t>(&head[0]);
  request.extent_count = Get<std::uint32_t>(&head[8]);
  const auto flags = Get<std::uint32_t>(&head[12]);
  if (flags != 0 || std::memcmp(&head[17], kExtendedMark.data(), kExtendedMark.size()) != 0) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("extended request with unknown flags ({:#x}) or mark", flags));
  }
  if (request.extent_count == 0 || request.extent_count > kTcpMaxExtents) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("extended request with {} extents", request.extent_count));
  }
  return request;
}

std::array<std::byte, kTcpRequestBytes> EncodeTcpRequest(const TcpRequest& request) {
  std::array<std::byte, kTcpRequestBytes> head{};
  std::uint8_t opcode = request.opcode == Opcode::kWrite ? kWriteBit : 0;
  if (request.protocol == TcpProtocol::kExtended) {
    opcode |= kExtendedBit;
    Put(&head[0], request.id);
    Put(&head[8], request.extent_count);
    std::memcpy(&head[17], kExtendedMark.data(), kExtendedMark.size());
  } else {
    opcode |= request.protocol == TcpProtocol::kV2 ? kV2Bit : 0;
    Put(&head[0], request.extent.length_bytes);
    Put(&head[8], request.extent.address);
  }
  head[16] = static_cast<std::byte>(opcode);
  return head;
}

TcpExtent DecodeTcpExtent(std::span<const std::byte, kTcpExtentBytes> bytes) {
  return {.address = Get<std::uint64_t>(&bytes[0]), .length_bytes = Get<std::uint64_t>(&bytes[8])};
}

std::array<std::byte, kTcpExtentBytes> EncodeTcpExtent(const TcpExtent& extent) {
  std::array<std::byte, kTcpExtentBytes> bytes{};
  Put(&bytes[0], extent.address);
  Put(&bytes[8], extent.length_bytes);
  return bytes;
}

Result<bool> DecodeTcpStatus(std::span<const std::byte, kTcpStatusBytes> bytes) {
  const auto code = Get<std::uint32_t>(&bytes[0]);
  if (Get<std::uint32_t>(&bytes[4]) != kStatusMark) {
    return Fail(ErrorCode::kMalformed, "the peer's answer is no status frame");
  }
  return code == 0;
}

std::array<std::byte, kTcpStatusBytes> EncodeTcpStatus(bool accepted) {
  std::array<std::byte, kTcpStatusBytes> bytes{};
  Put(&bytes[0], std::uint32_t{accepted ? 0U : 1U});
  Put(&bytes[4], kStatusMark);
  return bytes;
}

std::vector<std::byte> EncodeTcpReply(std::uint64_t id, const std::vector<bool>& rejected) {
  std::vector<std::byte> bytes(TcpReplyBytes(static_cast<std::uint32_t>(rejected.size())));
  Put(&bytes[0], id);
  Put(&bytes[8], kReplyMark);
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < rejected.size(); ++i) {
    if (rejected[i]) {
      ++count;
      bytes[16 + i / 8] |= std::byte{1} << (i % 8);
    }
  }
  Put(&bytes[12], count);
  return bytes;
}

Result<std::vector<std::uint32_t>> DecodeTcpReply(std::span<const std::byte> bytes,
                                                  std::uint64_t id, std::uint32_t extent_count) {
  if (bytes.size() != TcpReplyBytes(extent_count) || Get<std::uint32_t>(&bytes[8]) != kReplyMark ||
      Get<std::uint64_t>(&bytes[0]) != id) {
    return Fail(ErrorCode::kMalformed, fmt::format("the peer's answer is none to request {}", id));
  }
  const auto count = Get<std::uint32_t>(&bytes[12]);
  std::vector<std::uint32_t> rejected;
  if (count != 0) {
    for (std::uint32_t i = 0; i < (bytes.size() - 16) * 8; ++i) {
      if ((bytes[16 + i / 8] & (std::byte{1} << (i % 8))) != std::byte{0}) {
        rejected.push_back(i);
      }
    }
  }
  if (rejected.size() != count || (!rejected.empty() && rejected.back() >= extent_count)) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("the peer's answer to request {} contradicts itself", id));
  }
  return rejected;
}

}  // namespace mooncake::transfer
