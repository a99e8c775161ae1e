// Feeds a server session with any bytes in portions that the bytes themselves choose: it must touch
// nothing but the registered memory, and always want input, have output, or be over.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "mooncake-transfer-engine/src/transports/tcp/server_session.h"

using mooncake::transfer::IovList;
using mooncake::transfer::RegionTable;
using mooncake::transfer::ServerSession;

namespace {

constexpr std::size_t kRegionBytes = 4096;

// The first byte of an address field tells whether it is made to point into the region: a fuzzer
// does not guess 64-bit addresses.
void Aim(std::vector<std::uint8_t>& bytes, std::uint64_t base) {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    if (bytes[at + 7] == 0xAA) {
      const std::uint64_t address = base + bytes[at] + (std::uint64_t{bytes[at + 1]} << 8);
      std::memcpy(&bytes[at], &address, sizeof address);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto* const memory = new std::vector<std::byte>(kRegionBytes);  // Red zones around it.
  static auto* const regions = [] {
    auto* const table = new RegionTable;
    MC_CHECK(table
                 ->Add({.address = reinterpret_cast<std::uintptr_t>(memory->data()),
                        .length_bytes = kRegionBytes})
                 .has_value());
    return table;
  }();
  if (size < 2) {
    return 0;
  }
  const std::size_t in = 1 + data[0];
  const std::size_t out = 1 + data[1];
  std::vector<std::uint8_t> bytes(data + 2, data + size);
  Aim(bytes, reinterpret_cast<std::uintptr_t>(memory->data()));
  ServerSession session(*regions);
  std::size_t used = 0;
  while (!session.finished() && (used < bytes.size() || session.HasOutput())) {
    MC_CHECK(session.WantsInput() || session.HasOutput());
    if (session.WantsInput() && used < bytes.size()) {
      IovList list;
      if (!session.FillInput(list)) {
        return 0;
      }
      std::size_t left = std::min({in, bytes.size() - used, list.bytes()});
      const std::size_t moved = left;
      for (const iovec& entry : list.entries()) {
        const std::size_t part = std::min(left, entry.iov_len);
        std::memcpy(entry.iov_base, bytes.data() + used, part);
        used += part;
        left -= part;
      }
      if (!session.OnInput(moved)) {
        return 0;
      }
    }
    if (session.HasOutput()) {
      IovList list;
      if (!session.FillOutput(list)) {
        return 0;
      }
      if (!session.OnOutput(std::min(out * 64, list.bytes()))) {
        return 0;
      }
    }
  }
  return 0;
}
