// A stream of bytes, cut where its first byte says, gives the same message or the same refusal as
// in one piece; bodies are read without harm.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "mooncake-transfer-engine/src/metadata/handshake_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mooncake::transfer;  // NOLINT(google-build-using-namespace)
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  HandshakeReader whole(2048);
  const auto complete = whole.Feed(bytes);
  HandshakeReader pieces(2048);
  const std::size_t step = data[0] % 32 + 1;
  bool failed = false;
  bool done = false;
  for (std::size_t at = 0; at < bytes.size() && !failed && !done; at += step) {
    const auto fed = pieces.Feed(bytes.substr(at, step));
    failed = !fed.has_value();
    done = fed.has_value() && *fed;
  }
  MC_CHECK(failed == !complete.has_value());
  MC_CHECK(done == (complete.has_value() && *complete));
  if (done) {
    const HandshakeMessage message = whole.Take();
    MC_CHECK(message.json == pieces.Take().json);
    const bool is_json = IsHandshakeJson(message.json);
    if (const auto notification = DecodeNotification(message.json)) {
      MC_CHECK(is_json);
      const auto text = EncodeNotification(*notification);
      MC_CHECK(text.has_value() && DecodeNotification(*text) == *notification);
    }
  }
  return 0;
}
