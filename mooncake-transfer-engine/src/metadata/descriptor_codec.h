// SegmentDescriptor <-> the JSON of docs/formats/segment_descriptor.md.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/metadata/segment_descriptor.h"

namespace mooncake::transfer {

// The most a reader accepts: the upper end of MC_HANDSHAKE_MAX_LENGTH, some two million buffers.
inline constexpr std::size_t kMaxDescriptorBytes = std::size_t{128} << 20;

// The highest version of the tcp data protocol that we speak; a peer that announces more is spoken
// to in this one.
inline constexpr std::uint32_t kMaxTcpProtoVersion = 2;

// One line, no newline, keys sorted: byte for byte what the published package writes, plus
// "mooncake_ext" when there is an extension.
[[nodiscard]] std::string EncodeDescriptor(const SegmentDescriptor& descriptor);

// Fields we do not know are ignored, fields that the published reader does not need may be absent.
// Of a descriptor with several protocols the tcp one is taken, if any, with its buffers. An
// extension of a later version is dropped: its owner is then an ordinary peer.
//
// Errors: kMalformed: not JSON, a field of the wrong type or out of range, or a buffer without
// name, address or length. kNotSupported: a protocol whose buffers are no memory (cxl, nvmeof).
[[nodiscard]] Result<SegmentDescriptor> DecodeDescriptor(
    std::string_view json, std::size_t max_bytes = kMaxDescriptorBytes);

}  // namespace mooncake::transfer
