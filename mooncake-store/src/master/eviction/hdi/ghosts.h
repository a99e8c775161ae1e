// Ghosts: what is remembered of blocks whether they are resident or not, so that a chain is known
// when it returns and re-use can be learned of what was dropped, too.
//
// Thin: a chain leaves a ghost at every eighth block and at its last but one, each standing for the
// blocks since the one before. First in, first out. Each ghost adds to the hazards the ticks that
// it has waited: when it is hit, when it is pushed out, and now and then by a hand that goes round.
//
// Thread-safety: none; the owner's lock.
// Memory:        20 bytes a ghost and 10 to 20 in the index; given back when the limit falls.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "mooncake-store/src/master/eviction/hdi/hazards.h"
#include "mooncake-store/src/master/hash_index.h"
#include "mooncake-store/src/master/page_allocator.h"

namespace mooncake::store {

class Ghosts {
 public:
  // `first` is the first id: any will do.
  explicit Ghosts(Hazards& hazards, std::uint32_t first = 0)
      : hazards_(hazards), first_(first), hand_(first) {}

  struct Ghost {
    std::uint32_t hash_low = 0;
    std::uint32_t hash_high = 0;
    std::uint32_t last = 0;     // The tick of the block's last use,
    std::uint32_t exposed = 0;  // and up to which its waiting has been told.
    Reuse reuse;
    std::uint8_t weight = 0;  // 0: gone.
  };
  static_assert(sizeof(Ghost) == 20);

  using Id = std::uint32_t;
  static constexpr Id kNone = HashIndex::kNone;

  void Prefetch(std::uint64_t hash) const { index_.Prefetch(static_cast<std::uint32_t>(hash)); }
  // kNone: there is none. An id lives until the next Add().
  [[nodiscard]] Id Find(std::uint64_t hash) const;
  [[nodiscard]] const Ghost& At(Id id) const { return chunks_[ChunkOf(id)][id % kChunkGhosts]; }

  // The block was asked for: its waiting is over, and the ghost is gone.
  void Hit(Id id, std::uint32_t now);
  // Of a block that has no ghost. At most `limit` stay, the newest, counting those that are gone.
  void Add(std::uint64_t hash, std::uint32_t now, const Reuse& reuse, std::uint8_t weight,
           std::size_t limit);
  // Gives memory back after the limit has fallen, a few ghosts a call.
  void Trim(std::uint32_t now, std::size_t limit);
  // The next `count` ghosts under the hand tell what they have waited.
  void Expose(std::size_t count, std::uint32_t now);

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kChunkGhosts = 4096;
  using Chunk = std::vector<Ghost, PageAllocator<Ghost>>;

  // Ids count up and wrap around; the ring holds those from first_ on.
  [[nodiscard]] std::size_t ChunkOf(Id id) const {
    return (id / kChunkGhosts - first_ / kChunkGhosts) % kChunkNumbers;
  }
  Ghost& Place(Id id) { return chunks_[ChunkOf(id)][id % kChunkGhosts]; }
  static constexpr std::uint32_t kChunkNumbers = (std::uint64_t{1} << 32U) / kChunkGhosts;

  void Tell(Ghost& ghost, std::uint32_t now);
  void Drop(Id id);
  void Append(const Ghost& ghost);
  void PopFirst(std::uint32_t now);

  Hazards& hazards_;
  HashIndex index_;
  std::deque<Chunk> chunks_;
  Id first_;
  std::uint32_t size_ = 0;
  Id hand_;
};

}  // namespace mooncake::store
