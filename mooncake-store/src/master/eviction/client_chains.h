// What one client looked up last. Tells
//   - the parent of a key that is put: the key before it in its chain. A put batch holds only the
//     keys that were missing, so its order is not enough;
//   - whether a lookup belongs to one that was heard already: clients ask whether keys are there,
//     then where, and some again while they read. That is one use, not several.
//
// Thread-safety: none.
// Bounds:        the last kChains lookups (prefill takes its time, and others are looked up
//                meanwhile), together kKeys keys of 16 bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mooncake-store/src/master/eviction/policy.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

class ClientChains {
 public:
  static constexpr std::size_t kChains = 64;
  static constexpr std::size_t kKeys = 4 * kMaxKeysPerBatch;

  // A window of a lookup, with the slots of the keys found. `reads`: it asked where the bytes are,
  // not only whether they are there. True when it belongs to an earlier one.
  bool OnLookup(const ChainEvent& event, bool reads);

  // The parent of the first key of a window of puts, before it has a slot (hash 0: none known).
  [[nodiscard]] ChainKey ParentOfFirst(const ChainEvent& puts);

  // A window of puts, with the slots of its keys (kNoSlot: refused). Sets parents[i] for each key
  // (hash 0: none known). A key that no remembered lookup holds has the key before it in the put
  // call as its parent.
  void OnPut(const ChainEvent& puts, std::span<ChainKey> parents);

  [[nodiscard]] std::size_t key_count() const { return key_count_; }

 private:
  // Where in a chain something goes on. The key's hash stands beside its place, so that a search of
  // all chains touches none of their keys.
  struct Cursor {
    std::size_t at = 0;
    std::uint64_t hash = 0;  // 0: at the end.
  };
  struct Chain {
    std::uint64_t id = 0;
    std::uint64_t read_by = 0;  // The call that reads it; 0 = none yet.
    Cursor read;                // Where reading goes on,
    Cursor put;                 // and where putting does.
    std::vector<ChainKey> keys;
  };
  // A key in a remembered chain; null: in none.
  struct Place {
    Chain* chain = nullptr;
    std::size_t at = 0;
  };

  static void Move(const Chain& chain, Cursor& cursor, std::size_t to);
  // Puts go on with the first key from there on that is not present.
  static void MoveToMissing(Chain& chain, std::size_t to);
  // Whether the event reads what a remembered lookup found, in its order.
  bool Reads(const ChainEvent& event);
  static bool ReadFrom(Chain& chain, const ChainEvent& event);
  void Remember(const ChainEvent& event, bool reads);
  Place PlaceOfPut(std::uint64_t hash);
  // Calls visit(chain) from the newest chain on, `most` times or until it returns true; whether it
  // has.
  template <typename Visit>
  bool AnyOf(std::size_t most, Visit visit);

  std::vector<Chain> ring_;
  std::size_t newest_ = 0;  // In the ring.
  std::size_t key_count_ = 0;
  std::uint64_t put_chain_ = 0;
  ChainKey last_put_;  // Of that chain.
};

}  // namespace mooncake::store
