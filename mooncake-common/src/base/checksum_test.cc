#include "mooncake-common/src/base/checksum.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/random.h"

namespace mooncake {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// One bit at a time, straight from the definition.
std::uint64_t NaiveCrc64(std::span<const std::byte> bytes) {
  std::uint64_t crc = 0;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<std::uint64_t>(byte) << 56;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc << 1) ^ ((crc >> 63) != 0 ? 0x42F0E1EBA9EA3693U : 0);
    }
  }
  return crc;
}

TEST(Checksum, GivesThePublishedCheckValues) {
  EXPECT_EQ(Crc64Of(Bytes("123456789")), 0x6c40df5f0b497347U);
  EXPECT_EQ(Crc64Of({}), 0U);
}

TEST(Checksum, AgreesWithTheDefinitionInAnyPieces) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Rng rng(seed);
    std::vector<std::byte> data(rng.Uniform(3000));
    for (std::byte& byte : data) {
      byte = static_cast<std::byte>(rng.Next());
    }
    Crc64 crc64;
    for (std::span<const std::byte> rest(data); !rest.empty();) {
      const auto piece = rest.first(rng.Between(1, rest.size()));
      crc64.Update(piece);
      rest = rest.subspan(piece.size());
    }
    EXPECT_EQ(crc64.value(), NaiveCrc64(data));
    EXPECT_EQ(Crc64Of(data), crc64.value());
  }
}

}  // namespace
}  // namespace mooncake
