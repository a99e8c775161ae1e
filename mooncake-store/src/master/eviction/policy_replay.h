// A store of blocks of one size, in memory only, that asks a policy as the master does: to judge
// policies by what they keep, with neither shards nor bytes.
//
// Thread-safety: none.
// Determinism:   equal policies and equal calls give equal results.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "mooncake-store/src/master/eviction/policy.h"

namespace mooncake::store {

class PolicyReplay {
 public:
  struct Options {
    std::uint32_t capacity = 1;  // In blocks.
    double ahead = 0.05;         // As the master's eviction_ratio.
    std::int64_t lease_ns = 0;   // Of what a lookup finds.
    std::uint32_t segments = 1;  // Blocks lie on them in turn; all have room at the same time.
  };

  PolicyReplay(std::unique_ptr<EvictionPolicy> policy, const Options& options);

  // What a serving engine does: looks the whole chain up and puts what is missing behind the hits.
  void Serve(std::span<const std::uint64_t> chain, std::int64_t now_ns = 0);

  // A lookup of one block on its own.
  void Read(std::uint64_t block, std::int64_t now_ns);

  struct Counts {
    std::uint64_t asked = 0;
    std::uint64_t prefix_hits = 0;  // Leading present blocks.
    std::uint64_t present = 0;
    std::uint64_t puts = 0;
    std::uint64_t refused = 0;
    std::uint64_t left_behind = 0;  // Evicted while others hung on it.
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] double prefix_ratio() const {
    return counts_.asked == 0
               ? 0
               : static_cast<double>(counts_.prefix_hits) / static_cast<double>(counts_.asked);
  }
  [[nodiscard]] std::size_t used() const { return slot_of_.size(); }
  // A number that tells histories of evictions apart.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }
  [[nodiscard]] EvictionPolicy& policy() { return *policy_; }

 private:
  struct Object {
    std::uint64_t block = 0;
    std::int64_t bound_until_ns = 0;
    Slot parent = kNoSlot;
    std::uint32_t children = 0;
  };
  class Guard;

  // False: nothing may go.
  bool MakeRoom(std::size_t blocks, Slot keep, std::int64_t now_ns);

  const std::unique_ptr<EvictionPolicy> policy_;
  const Options options_;
  Counts counts_;
  std::uint64_t fingerprint_ = 0;
  std::uint64_t chain_id_ = 0;
  std::unordered_map<std::uint64_t, Slot> slot_of_;
  std::vector<Object> objects_;  // By slot.
  std::vector<Slot> free_;
  std::vector<ChainKey> keys_;  // Scratch.
  std::vector<Slot> victims_;
  std::vector<Slot> started_;
};

}  // namespace mooncake::store
