// Checksums of object values, by ISA-L (carry-less multiplication where the CPU has it).
//
// Thread-safety: pure functions; a Crc64 is a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mooncake {

// CRC-64/ECMA-182: polynomial 0x42F0E1EBA9EA3693, most significant bit first, from 0, nothing
// reflected or inverted. Of "123456789": 0x6c40df5f0b497347. Bytes may come in pieces.
class Crc64 {
 public:
  void Update(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

[[nodiscard]] std::uint64_t Crc64Of(std::span<const std::byte> bytes);

}  // namespace mooncake
