// The frame that all RPC travels in; docs/formats/rpc.md.
//
// Thread-safety: pure functions.
// Ownership:     a parsed body is a view into the bytes given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mooncake-common/src/base/result.h"

namespace mooncake::rpc {

inline constexpr std::size_t kFrameHeaderBytes = 16;
// Bodies begin at a multiple of this in the stream, so that FlatBuffers are read in place.
inline constexpr std::size_t kFrameAlignmentBytes = 8;
inline constexpr std::size_t kMaxBodyBytes = std::size_t{64} << 20;

inline constexpr std::uint16_t kHelloMethod = 0;  // Reserved; methods of users begin at 1.

enum class FrameFlags : std::uint16_t {
  kRequest = 0,
  kReply = 1,  // The body is the method's answer.
  kError = 3,  // A reply whose body is an error (EncodeError).
};

struct FrameHeader {
  std::uint32_t body_bytes = 0;
  std::uint16_t method = 0;
  FrameFlags flags = FrameFlags::kRequest;
  std::uint64_t id = 0;  // The caller's; a reply repeats it.
};

// How many zero bytes follow a body.
[[nodiscard]] constexpr std::size_t FramePadding(std::size_t body_bytes) {
  return (kFrameAlignmentBytes - body_bytes % kFrameAlignmentBytes) % kFrameAlignmentBytes;
}
[[nodiscard]] constexpr std::size_t FrameBytes(std::size_t body_bytes) {
  return kFrameHeaderBytes + body_bytes + FramePadding(body_bytes);
}

void EncodeFrameHeader(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> to);

// Reads a header. Errors: kMalformed for more than kMaxBodyBytes, or flags that do not exist.
[[nodiscard]] Result<FrameHeader> DecodeFrameHeader(
    std::span<const std::byte, kFrameHeaderBytes> from);

struct Frame {
  FrameHeader header;
  std::span<const std::byte> body;
  std::size_t bytes = 0;  // All of it in the stream; 0 = not all of it has arrived.
};

// Looks at the front of what has arrived. While bytes is 0, header is set once it has arrived.
//
// Errors: those of DecodeFrameHeader; kMalformed for padding that is not zero.
[[nodiscard]] Result<Frame> DecodeFrame(std::span<const std::byte> from);

// The body of an error reply: u8 code, then the message. A code that does not exist reads as
// kInternal, so that peers may learn new ones.
inline constexpr std::size_t kMaxErrorTextBytes = 4096;  // Longer messages are cut.
[[nodiscard]] std::size_t ErrorBodyBytes(const Error& error);
void EncodeError(const Error& error, std::span<std::byte> to);
[[nodiscard]] Error DecodeError(std::span<const std::byte> body);

}  // namespace mooncake::rpc
