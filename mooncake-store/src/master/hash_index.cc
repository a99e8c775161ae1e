#include "mooncake-store/src/master/hash_index.h"

#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

namespace {

constexpr std::size_t kMinCapacity = 16;

}  // namespace

void HashIndex::Place(Entry entry) {
  std::size_t at = entry.hash & mask_;
  while (entries_[at].value != kNone) {
    at = (at + 1) & mask_;
  }
  entries_[at] = entry;
}

void HashIndex::Rehash(std::size_t capacity) {
  std::vector<Entry, PageAllocator<Entry>> old(capacity, Entry{0, kNone});
  old.swap(entries_);
  mask_ = capacity - 1;
  for (const Entry& entry : old) {
    if (entry.value != kNone) {
      Place(entry);
    }
  }
}

void HashIndex::Insert(std::uint32_t hash, std::uint32_t value) {
  MC_CHECK(value != kNone);
  if ((size_ + 1) * 5 > entries_.size() * 4) {
    Rehash(entries_.empty() ? kMinCapacity : entries_.size() * 2);
  }
  Place(Entry{hash, value});
  ++size_;
}

void HashIndex::Erase(std::uint32_t hash, std::uint32_t value) {
  MC_CHECK(!entries_.empty());
  std::size_t hole = hash & mask_;
  while (entries_[hole].value != value || entries_[hole].hash != hash) {
    MC_CHECK(entries_[hole].value != kNone);
    hole = (hole + 1) & mask_;
  }
  // Entries behind the hole move up into it unless that would put them before their home, so that
  // no tombstones are needed.
  for (std::size_t at = (hole + 1) & mask_; entries_[at].value != kNone; at = (at + 1) & mask_) {
    const std::size_t home = entries_[at].hash & mask_;
    if (((at - home) & mask_) >= ((at - hole) & mask_)) {
      entries_[hole] = entries_[at];
      hole = at;
    }
  }
  entries_[hole].value = kNone;
  --size_;
  if (size_ == 0) {
    std::vector<Entry, PageAllocator<Entry>>().swap(entries_);
    mask_ = 0;
  } else if (entries_.size() > kMinCapacity && size_ * 8 < entries_.size()) {
    Rehash(entries_.size() / 2);
  }
}

}  // namespace mooncake::store
