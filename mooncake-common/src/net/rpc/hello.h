// The greeting that opens an RPC connection; docs/formats/rpc.md.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mooncake-common/src/base/result.h"

namespace mooncake::rpc {

inline constexpr std::uint16_t kProtocolVersion = 1;
// Before a peer is known it may send no more than this.
inline constexpr std::size_t kMaxHelloBytes = 4096;

// What a client says first.
struct Hello {
  std::uint16_t min_version = kProtocolVersion;
  std::uint16_t max_version = kProtocolVersion;
  std::uint64_t features = 0;
  std::string token;  // Empty: none.
  std::string software;
};

// What the server answers.
struct Welcome {
  std::uint16_t version = 0;
  std::uint64_t features = 0;
  std::string software;
  std::optional<Error> refusal;
};

[[nodiscard]] std::vector<std::byte> EncodeHello(const Hello& hello);
[[nodiscard]] std::vector<std::byte> EncodeWelcome(const Welcome& welcome);
// Errors: kMalformed.
[[nodiscard]] Result<Hello> DecodeHello(std::span<const std::byte> body);
[[nodiscard]] Result<Welcome> DecodeWelcome(std::span<const std::byte> body);

// Decides the answer of a server that speaks `ours` (token: the one it demands, empty for none).
// A refusal is kNotSupported (no common version) or kPermissionDenied (token).
[[nodiscard]] Welcome AnswerHello(const Hello& theirs, const Hello& ours);

}  // namespace mooncake::rpc
