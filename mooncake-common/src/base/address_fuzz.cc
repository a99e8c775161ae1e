#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mooncake-common/src/base/address.h"

// Any bytes give an address or an error; an address survives printing and reading again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto parsed = mooncake::ParseHostPort(text)) {
    MC_CHECK(mooncake::ParseHostPort(parsed->ToString()) == *parsed);
    MC_CHECK(!parsed->host.empty());
  }
  return 0;
}
