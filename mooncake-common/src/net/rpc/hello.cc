#include "mooncake-common/src/net/rpc/hello.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "mooncake-common/src/net/rpc/hello_generated.h"

namespace mooncake::rpc {
namespace {

constexpr const char* kHelloMagic = "MCRH";
constexpr const char* kWelcomeMagic = "MCRW";

std::vector<std::byte> Bytes(const flatbuffers::FlatBufferBuilder& builder) {
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {begin, begin + builder.GetSize()};
}

std::string Text(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

template <typename T>
Result<const T*> Verified(std::span<const std::byte> body, const char* magic, const char* what) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(body.data());
  flatbuffers::Verifier verifier(bytes, body.size());
  if (!verifier.VerifyBuffer<T>(magic)) {
    return Fail(ErrorCode::kMalformed, fmt::format("a peer's first frame is no {}; does it speak "
                                                   "the mooncake RPC protocol?",
                                                   what));
  }
  return flatbuffers::GetRoot<T>(bytes);
}

// In a time that does not tell how much of it was right.
bool SameToken(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ (i < b.size() ? b[i] : '\0'));
  }
  return difference == 0;
}

}  // namespace

std::vector<std::byte> EncodeHello(const Hello& hello) {
  flatbuffers::FlatBufferBuilder builder;
  const auto token = hello.token.empty() ? 0 : builder.CreateString(hello.token);
  const auto software = builder.CreateString(hello.software);
  builder.Finish(wire::CreateHello(builder, hello.min_version, hello.max_version, hello.features,
                                   token, software),
                 kHelloMagic);
  return Bytes(builder);
}

std::vector<std::byte> EncodeWelcome(const Welcome& welcome) {
  flatbuffers::FlatBufferBuilder builder;
  const auto software = builder.CreateString(welcome.software);
  const auto refusal = welcome.refusal ? builder.CreateString(welcome.refusal->message) : 0;
  builder.Finish(
      wire::CreateWelcome(
          builder, !welcome.refusal, welcome.version, welcome.features, software, refusal,
          welcome.refusal ? static_cast<std::uint8_t>(welcome.refusal->code) : std::uint8_t{0}),
      kWelcomeMagic);
  return Bytes(builder);
}

Result<Hello> DecodeHello(std::span<const std::byte> body) {
  MC_TRY_ASSIGN(const auto* hello, Verified<wire::Hello>(body, kHelloMagic, "hello"));
  return Hello{.min_version = hello->min_version(),
               .max_version = hello->max_version(),
               .features = hello->features(),
               .token = Text(hello->token()),
               .software = Text(hello->software())};
}

Result<Welcome> DecodeWelcome(std::span<const std::byte> body) {
  MC_TRY_ASSIGN(const auto* wire, Verified<wire::Welcome>(body, kWelcomeMagic, "welcome"));
  Welcome welcome{.version = wire->version(),
                  .features = wire->features(),
                  .software = Text(wire->software()),
                  .refusal = std::nullopt};
  if (!wire->accepted()) {
    const std::uint8_t code =
        std::min(wire->refusal_code(), static_cast<std::uint8_t>(ErrorCode::kInternal));
    welcome.refusal = Error{static_cast<ErrorCode>(code), Text(wire->refusal())};
  }
  return welcome;
}

Welcome AnswerHello(const Hello& theirs, const Hello& ours) {
  Welcome welcome{
      .version = 0, .features = ours.features, .software = ours.software, .refusal = std::nullopt};
  const std::uint16_t best = std::min(theirs.max_version, ours.max_version);
  if (best < std::max(theirs.min_version, ours.min_version)) {
    welcome.refusal =
        Error{ErrorCode::kNotSupported,
              fmt::format("\"{}\" speaks RPC versions {} to {}, \"{}\" {} to {}; use versions of "
                          "mooncake that have one in common",
                          theirs.software, theirs.min_version, theirs.max_version, ours.software,
                          ours.min_version, ours.max_version)};
  } else if (!ours.token.empty() && !SameToken(theirs.token, ours.token)) {
    welcome.refusal =
        Error{ErrorCode::kPermissionDenied,
              theirs.token.empty() ? "the server demands a token and got none; configure its token"
                                   : "the token is not the server's; configure the same on both"};
  } else {
    welcome.version = best;
  }
  return welcome;
}

}  // namespace mooncake::rpc
