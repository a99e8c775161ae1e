// The transfer engine of a simulated cluster: memory of processes, and moves between them that take
// their time, byte range by byte range, so that whoever reads what is being overwritten sees it
// torn.
//
// A region never gets an address that another one had. It vanishes with its process. Pieces move in
// chunks at instants of their own; a chunk whose region is gone, or cut off, fails its piece. What
// a process had sent before it died may still arrive a little later.
//
// Thread-safety: none; driven by one Simulator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mooncake-common/src/sim/network.h"
#include "mooncake-common/src/sim/simulator.h"
#include "mooncake-store/src/client/operation.h"

namespace mooncake::store {

struct EngineRates {
  double fail = 0;  // A piece fails though nothing is wrong that anybody could see.
  double slow = 0;  // A batch takes slow_time more.
  Duration slow_time = std::chrono::milliseconds(500);
  Duration base_time = std::chrono::microseconds(20);

  [[nodiscard]] static EngineRates Draw(Rng& rng);
  [[nodiscard]] std::string ToString() const;
};

class SimEngine {
 public:
  using Done = std::move_only_function<void(std::vector<PieceFailure>)>;

  SimEngine(sim::Simulator& simulator, sim::Network& network, EngineRates rates)
      : simulator_(simulator), network_(network), rates_(rates) {}

  void SetRates(const EngineRates& rates) { rates_ = rates; }

  // Memory of `owner` as it lives now, filled with bytes that no value has.
  std::uint64_t Allocate(sim::ProcessId owner, std::uint64_t size);
  void Free(std::uint64_t base);
  // The region's bytes, or none when it is gone.
  [[nodiscard]] std::span<std::byte> Region(std::uint64_t base);

  // Whether bytes of some write may still arrive between two addresses.
  [[nodiscard]] bool BeingWritten(std::uint64_t begin, std::uint64_t end) const;

  // Moves the pieces for `from`; `done` runs on it, unless it dies before. Local memory must stay
  // alive as long as `keep` does.
  void Move(sim::ProcessId from, const TransferBatch& batch, const std::shared_ptr<void>& keep,
            Done done);

 private:
  struct Memory {
    sim::ProcessId owner = 0;
    std::uint64_t life = 0;
    std::vector<std::byte> bytes;
  };
  struct Flight;

  // The bytes at `address` if their process lives and can be reached from `from`.
  [[nodiscard]] std::byte* Reach(sim::ProcessId from, std::uint64_t address, std::uint64_t length);
  void MoveChunk(const std::shared_ptr<Flight>& flight, std::uint32_t piece, std::uint64_t offset,
                 std::uint64_t length);

  sim::Simulator& simulator_;
  sim::Network& network_;
  EngineRates rates_;
  std::uint64_t next_base_ = 0x10000000;
  std::map<std::uint64_t, Memory> regions_;  // By base.
  struct Landing {
    std::weak_ptr<Flight> flight;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Instant until{};  // Its last chunk has landed by then.
  };
  std::vector<Landing> landings_;
};

}  // namespace mooncake::store
