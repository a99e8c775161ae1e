#include "mooncake-store/src/master/eviction/hdi/ghosts.h"

#include <algorithm>
#include <span>

namespace mooncake::store {

Ghosts::Id Ghosts::Find(std::uint64_t hash) const {
  return index_.Find(static_cast<std::uint32_t>(hash), [&](Id id) {
    return At(id).hash_high == static_cast<std::uint32_t>(hash >> 32U);
  });
}

void Ghosts::Tell(Ghost& ghost, std::uint32_t now) {
  hazards_.AddWait(ghost.reuse.cls, ghost.weight, ghost.exposed - ghost.last, now - ghost.last);
  ghost.exposed = now;
}

void Ghosts::Drop(Id id) {
  Ghost& ghost = Place(id);
  index_.Erase(ghost.hash_low, id);
  ghost.weight = 0;
}

void Ghosts::Hit(Id id, std::uint32_t now) {
  Ghost& ghost = Place(id);
  Tell(ghost, now);
  hazards_.AddHit(ghost.reuse.cls, ghost.weight, now - ghost.last);
  Drop(id);
}

void Ghosts::Append(const Ghost& ghost) {
  const Id id = first_ + size_;
  if (size_ == 0 || id % kChunkGhosts == 0) {
    chunks_.emplace_back(kChunkGhosts);
  }
  ++size_;
  Place(id) = ghost;
}

void Ghosts::PopFirst(std::uint32_t now) {
  Ghost& ghost = Place(first_);
  if (ghost.weight != 0) {
    Tell(ghost, now);
    Drop(first_);
  }
  ++first_;
  --size_;
  if (size_ == 0 || first_ % kChunkGhosts == 0) {
    chunks_.pop_front();
  }
}

void Ghosts::Add(std::uint64_t hash, std::uint32_t now, const Reuse& reuse, std::uint8_t weight,
                 std::size_t limit) {
  for (int few = 4; few > 0 && size_ > 0 && size_ >= limit; --few) {
    PopFirst(now);
  }
  if (first_ + size_ == kNone) {
    Append({});  // That number is no id.
  }
  const Id id = first_ + size_;
  const auto low = static_cast<std::uint32_t>(hash);
  Append({.hash_low = low,
          .hash_high = static_cast<std::uint32_t>(hash >> 32U),
          .last = now,
          .exposed = now,
          .reuse = reuse,
          .weight = weight});
  index_.Insert(low, id);
}

void Ghosts::Trim(std::uint32_t now, std::size_t limit) {
  // Not at once: the limit follows the number of objects, which goes up and down with each
  // eviction.
  for (int few = 2; few > 0 && size_ > limit + limit / 8; --few) {
    PopFirst(now);
  }
}

void Ghosts::Expose(std::size_t count, std::uint32_t now) {
  count = std::min<std::size_t>(count, size_);
  while (count > 0) {
    if (hand_ - first_ >= size_) {
      hand_ = first_;
    }
    // As far as they lie side by side.
    const std::size_t left = std::min<std::size_t>(
        {count, size_ - (hand_ - first_), kChunkGhosts - hand_ % kChunkGhosts});
    for (Ghost& ghost : std::span(&Place(hand_), left)) {
      if (ghost.weight != 0 && ghost.exposed != now) {
        Tell(ghost, now);
      }
    }
    count -= left;
    hand_ += static_cast<Id>(left);
  }
}

}  // namespace mooncake::store
