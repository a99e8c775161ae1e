// Any bytes as what a peer sends: frames one after another, the first one a hello or a welcome.

#include <cstdint>
#include <span>

#include "mooncake-common/src/net/rpc/frame.h"
#include "mooncake-common/src/net/rpc/hello.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mooncake::rpc;  // NOLINT(google-build-using-namespace)
  auto bytes = std::as_bytes(std::span(data, size));
  static_cast<void>(DecodeHello(bytes));
  static_cast<void>(DecodeWelcome(bytes));
  static_cast<void>(DecodeError(bytes));
  for (;;) {
    const auto frame = DecodeFrame(bytes);
    if (!frame || frame->bytes == 0) {
      return 0;
    }
    MC_CHECK(frame->bytes <= bytes.size() && frame->body.size() <= frame->bytes);
    static_cast<void>(DecodeHello(frame->body));
    bytes = bytes.subspan(frame->bytes);
  }
}
