#include "mooncake-common/src/base/checksum.h"

#include <isa-l/crc64.h>

namespace mooncake {

void Crc64::Update(std::span<const std::byte> bytes) {
  // ISA-L inverts its register before and after; the plain CRC inverts nothing. So both ends are
  // inverted once more here.
  value_ =
      ~crc64_ecma_norm(~value_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::uint64_t Crc64Of(std::span<const std::byte> bytes) {
  Crc64 crc;
  crc.Update(bytes);
  return crc.value();
}

}  // namespace mooncake
