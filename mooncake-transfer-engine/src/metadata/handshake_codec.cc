#include "mooncake-transfer-engine/src/metadata/handshake_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mooncake-transfer-engine/src/metadata/json_reader.h"

namespace mooncake::transfer {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint8_t kLastType = static_cast<std::uint8_t>(HandshakeType::kProbe);

std::uint64_t ReadLength(std::string_view bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i > 0; --i) {
    length = length << 8 | static_cast<std::uint8_t>(bytes[i - 1]);
  }
  return length;
}

// A control character that JSON does not begin with is a type of some later version.
bool IsUnknownType(std::uint8_t byte) {
  return byte > kLastType && byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r';
}

}  // namespace

std::string_view HandshakeTypeName(HandshakeType type) {
  switch (type) {
    case HandshakeType::kConnection:
      return "connection";
    case HandshakeType::kMetadata:
      return "metadata";
    case HandshakeType::kNotify:
      return "notify";
    case HandshakeType::kProbe:
      return "probe";
  }
  return "unknown";
}

std::string EncodeHandshake(std::optional<HandshakeType> type, std::string_view json) {
  std::uint64_t length = json.size() + 1 + (type ? 1 : 0);
  std::string frame;
  frame.reserve(kLengthBytes + length);
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    frame.push_back(static_cast<char>(length >> (8 * i)));
  }
  if (type) {
    frame.push_back(static_cast<char>(*type));
  }
  frame.append(json);
  frame.push_back('\n');
  return frame;
}

Result<bool> HandshakeReader::Feed(std::string_view bytes) {
  if (buffer_.size() < kLengthBytes) {
    const std::size_t taken = std::min(bytes.size(), kLengthBytes - buffer_.size());
    buffer_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (buffer_.size() < kLengthBytes) {
      return false;
    }
  }
  const std::uint64_t length = ReadLength(buffer_);
  if (length == 0 || length > max_bytes_) {
    return Fail(
        ErrorCode::kMalformed,
        fmt::format("read a handshake: a length of {} bytes, where 1 to {} are allowed; a peer "
                    "with many buffers may need a higher MC_HANDSHAKE_MAX_LENGTH",
                    length, max_bytes_));
  }
  buffer_.append(bytes.substr(0, kLengthBytes + length - buffer_.size()));
  return buffer_.size() == kLengthBytes + length;
}

HandshakeMessage HandshakeReader::Take() {
  const std::string frame = std::exchange(buffer_, {});
  const auto first = static_cast<std::uint8_t>(frame[kLengthBytes]);
  if (first <= kLastType) {
    return {.type = static_cast<HandshakeType>(first), .json = frame.substr(kLengthBytes + 1)};
  }
  return {.type = std::nullopt,
          .json = frame.substr(kLengthBytes + (IsUnknownType(first) ? 1 : 0))};
}

bool IsHandshakeJson(std::string_view text) {
  return !IsTooDeep(text) && nlohmann::json::accept(text);
}

bool WantsName(std::string_view request) {
  const auto document = ReadJsonObject(request, request.size(), "probe");
  return document && document->contains("want_name");
}

std::string EncodeNameReply(std::string_view name) {
  return WriteJson({{"name", name}, {"status", "success"}});
}

Result<std::string> DecodeNameReply(std::string_view json) {
  MC_TRY_ASSIGN(const nlohmann::json document, ReadJsonObject(json, json.size(), "probe reply"));
  return ReadString(document, "name", "");
}

Result<std::string> EncodeNotification(const Notification& notification) {
  const nlohmann::json document = {{"name", notification.name},
                                   {"notify_msg", notification.message}};
  try {
    return document.dump();
  } catch (const nlohmann::json::exception&) {
    return Fail(ErrorCode::kInvalidArgument,
                "send a notification: name and message must be UTF-8; encode binary data, for "
                "example in base64");
  }
}

Result<Notification> DecodeNotification(std::string_view json) {
  MC_TRY_ASSIGN(const nlohmann::json document, ReadJsonObject(json, json.size(), "notification"));
  Notification notification;
  MC_TRY_ASSIGN(notification.name, ReadString(document, "name", ""));
  MC_TRY_ASSIGN(notification.message, ReadString(document, "notify_msg", ""));
  return notification;
}

}  // namespace mooncake::transfer
