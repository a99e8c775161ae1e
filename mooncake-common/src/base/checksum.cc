#include "mooncake-common/src/base/checksum.h"

#include <isa-l/crc.h>
#include <isa-l/crc64.h>

#include <algorithm>

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

std::uint32_t Crc32cOf(std::span<const std::byte> bytes, std::uint32_t before) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 30;  // The library counts in an int.
  std::uint32_t state = ~before;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    // The parameter is not const by oversight; it is only read.
    auto* const data =
        const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
    state = crc32_iscsi(data, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
  return ~state;
}

}  // namespace mooncake
