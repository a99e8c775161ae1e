// Any bytes are refused or read; what was read is written and read back without change.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mooncake-transfer-engine/src/metadata/descriptor_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mooncake::transfer;  // NOLINT(google-build-using-namespace)
  const auto decoded =
      DecodeDescriptor(std::string_view(reinterpret_cast<const char*>(data), size));
  if (decoded) {
    const std::string text = EncodeDescriptor(*decoded);
    const auto again = DecodeDescriptor(text);
    MC_CHECK(again.has_value());
    MC_CHECK(EncodeDescriptor(*again) == text);
  }
  return 0;
}
