// The frames and bodies of docs/formats/handshake.md.
//
// Sans-IO: server, client and fuzz target use these same functions.
// Thread-safety: values and pure functions; a HandshakeReader is for one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/metadata/metadata.h"

namespace mooncake::transfer {

// Values are those of the wire.
enum class HandshakeType : std::uint8_t {
  kConnection = 0,
  kMetadata = 1,
  kNotify = 2,
  kProbe = 3,
};

// "probe" and so on, for messages.
[[nodiscard]] std::string_view HandshakeTypeName(HandshakeType type);

struct HandshakeMessage {
  // Absent: an old peer, which sends none, or a type we do not know. Both mean a connection
  // request.
  std::optional<HandshakeType> type;
  std::string json;  // As received, with its final newline.
};

// Default of MC_HANDSHAKE_MAX_LENGTH.
inline constexpr std::size_t kDefaultMaxHandshakeBytes = std::size_t{1} << 20;

// The frame of `json`, which has no final newline yet.
[[nodiscard]] std::string EncodeHandshake(std::optional<HandshakeType> type, std::string_view json);

// Puts one frame together from whatever pieces it comes in. Memory grows with what has arrived, not
// with what the length field promises.
class HandshakeReader {
 public:
  explicit HandshakeReader(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Takes the next bytes; true once the frame is complete. Bytes behind it are ignored, for a
  // connection carries one frame each way.
  //
  // Errors: kMalformed for a length of zero or beyond the limit; the reader is then of no more use.
  [[nodiscard]] Result<bool> Feed(std::string_view bytes);

  // The complete frame; leaves the reader empty, ready for the next.
  [[nodiscard]] HandshakeMessage Take();

  [[nodiscard]] std::size_t buffered_bytes() const { return buffer_.size(); }

 private:
  std::size_t max_bytes_;
  std::string buffer_;  // Length field and payload.
};

// Whether `text` is a JSON document that we are willing to look at.
[[nodiscard]] bool IsHandshakeJson(std::string_view text);

inline constexpr std::string_view kProbeRequest = "{}";
inline constexpr std::string_view kProbeReply = R"({"status":"success"})";
inline constexpr std::string_view kNotifyAccepted = R"({"name":"","notify_msg":"success"})";
inline constexpr std::string_view kNotifyRefused = R"({"name":"","notify_msg":""})";
// Asks who answers as well. Peers that do not know the question answer as to any probe; those that
// do add a "name".
inline constexpr std::string_view kNameRequest = R"({"want_name":true})";
[[nodiscard]] bool WantsName(std::string_view request);
[[nodiscard]] std::string EncodeNameReply(std::string_view name);
// The name in a reply to a probe; empty when the peer does not tell. Errors: kMalformed.
[[nodiscard]] Result<std::string> DecodeNameReply(std::string_view json);

// What a metadata request gets where descriptors lie in a central store.
inline constexpr std::string_view kNoDescriptor = "null";
// What an engine without queue pairs answers to a connection request.
inline constexpr std::string_view kConnectionReply =
    R"({"local_gid":"","local_lid":0,"local_nic_path":"","payload":"","peer_nic_path":"","qp_num":[],"reply_msg":""})";

// Errors: kInvalidArgument when a part is not UTF-8, which JSON cannot carry.
[[nodiscard]] Result<std::string> EncodeNotification(const Notification& notification);

// Reads requests and replies alike; an absent part is empty. Errors: kMalformed.
[[nodiscard]] Result<Notification> DecodeNotification(std::string_view json);

}  // namespace mooncake::transfer
