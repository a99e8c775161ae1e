// What every transport has to keep, as tests. A transport takes part by one line in
// transport_conformance_test.cc and a ConformancePeers of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>

#include "mooncake-transfer-engine/src/transports/transport.h"

namespace mooncake::transfer {

// Two started ends: one that asks, and one whose memory is asked for. Both may be in this process.
class ConformancePeers {
 public:
  virtual ~ConformancePeers() = default;
  // A new way to the other end.
  [[nodiscard]] virtual std::unique_ptr<Endpoint> Connect() = 0;
  // Memory of the asking end, as a transport may demand it (registered). At least kBytes.
  [[nodiscard]] virtual std::span<std::byte> local() = 0;
  // Memory of the other end as this process sees it, and where it is in that end's address space.
  [[nodiscard]] virtual std::span<std::byte> remote() = 0;
  [[nodiscard]] virtual std::uint64_t remote_address() = 0;
  // Makes the other end stop answering; false if it cannot, then tests that need it are skipped.
  virtual bool Stall() { return false; }
  virtual void Unstall() {}

  static constexpr std::size_t kBytes = std::size_t{2} << 20U;
};

struct ConformanceCase {
  std::string name;
  std::function<std::unique_ptr<ConformancePeers>()> make;
};

inline void PrintTo(const ConformanceCase& one, std::ostream* out) { *out << one.name; }

}  // namespace mooncake::transfer
