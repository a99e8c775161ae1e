// Any text: no crash, a parsed URL can be put into a request line and parses back to itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mooncake-common/src/net/http/url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto url = mooncake::Url::Parse(text)) {
    MC_CHECK(url->port != 0 && url->target.starts_with('/'));
    MC_CHECK(url->target.find_first_of(" \r\n") == std::string::npos);
    MC_CHECK(url->Authority().find_first_of(" \r\n/@") == std::string::npos);
    const auto again = mooncake::Url::Parse(url->ToString());
    MC_CHECK(again && *again == *url);
  }
  (void)mooncake::RequestTarget::Parse(text);
  MC_CHECK(mooncake::PercentDecode(mooncake::PercentEncode(text), true) == text);
  return 0;
}
