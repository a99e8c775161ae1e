#include "mooncake-transfer-engine/src/transports/tcp/iov_list.h"

namespace mooncake::transfer {

std::byte* DiscardedBytes() {
  alignas(64) static std::array<std::byte, kFillerBytes> bytes;
  return bytes.data();
}

std::byte* ZeroBytes() {
  alignas(64) static std::array<std::byte, kFillerBytes> bytes{};
  return bytes.data();
}

}  // namespace mooncake::transfer
