#include "mooncake-common/src/net/rpc/frame.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace mooncake::rpc {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they lie");

template <typename T>
void Put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <typename T>
T Get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

void EncodeFrameHeader(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> to) {
  Put(to.data(), header.body_bytes);
  Put(to.data() + 4, header.method);
  Put(to.data() + 6, static_cast<std::uint16_t>(header.flags));
  Put(to.data() + 8, header.id);
}

Result<FrameHeader> DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> from) {
  FrameHeader header{.body_bytes = Get<std::uint32_t>(from.data()),
                     .method = Get<std::uint16_t>(from.data() + 4),
                     .flags = FrameFlags::kRequest,
                     .id = Get<std::uint64_t>(from.data() + 8)};
  const auto flags = Get<std::uint16_t>(from.data() + 6);
  if (header.body_bytes > kMaxBodyBytes) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("a frame announces {} bytes, more than {}; is the peer a mooncake?",
                            header.body_bytes, kMaxBodyBytes));
  }
  if (flags != 0 && flags != 1 && flags != 3) {
    return Fail(ErrorCode::kMalformed,
                fmt::format("a frame has unknown flags {:#x}; is the peer a mooncake?", flags));
  }
  header.flags = static_cast<FrameFlags>(flags);
  return header;
}

Result<Frame> DecodeFrame(std::span<const std::byte> from) {
  Frame frame;
  if (from.size() < kFrameHeaderBytes) {
    return frame;
  }
  MC_TRY_ASSIGN(frame.header, DecodeFrameHeader(from.first<kFrameHeaderBytes>()));
  const std::size_t body_bytes = frame.header.body_bytes;
  const std::size_t bytes = FrameBytes(body_bytes);
  if (from.size() < bytes) {
    return frame;
  }
  const auto padding = from.subspan(kFrameHeaderBytes + body_bytes, FramePadding(body_bytes));
  if (std::ranges::any_of(padding, [](std::byte each) { return each != std::byte{0}; })) {
    return Fail(ErrorCode::kMalformed, "a frame's padding is not zero; is the peer a mooncake?");
  }
  frame.body = from.subspan(kFrameHeaderBytes, body_bytes);
  frame.bytes = bytes;
  return frame;
}

std::size_t ErrorBodyBytes(const Error& error) {
  return 1 + std::min(error.message.size(), kMaxErrorTextBytes);
}

void EncodeError(const Error& error, std::span<std::byte> to) {
  to[0] = static_cast<std::byte>(error.code);
  std::memcpy(to.data() + 1, error.message.data(), to.size() - 1);
}

Error DecodeError(std::span<const std::byte> body) {
  if (body.empty()) {
    return {ErrorCode::kInternal, "the peer reports an error without saying which"};
  }
  const auto code = std::to_integer<std::uint8_t>(body[0]);
  const auto text = body.subspan(1, std::min(body.size() - 1, kMaxErrorTextBytes));
  return {code <= static_cast<std::uint8_t>(ErrorCode::kInternal) ? static_cast<ErrorCode>(code)
                                                                  : ErrorCode::kInternal,
          std::string(reinterpret_cast<const char*>(text.data()), text.size())};
}

}  // namespace mooncake::rpc
