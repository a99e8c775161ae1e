#include "mooncake-store/src/master/space.h"

#include <algorithm>
#include <bit>

#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

namespace {

// How many ranges of the request's own bin, which may be a little too short, are tried before a
// longer range is cut; and how many once nothing longer is left.
constexpr int kQuickTries = 8;
constexpr int kLastTries = 512;
constexpr std::size_t kShrinkAboveNodes = 4096;

std::uint64_t UnitsOf(std::uint64_t bytes) {
  return (bytes + kSpaceUnitBytes - 1) / kSpaceUnitBytes;
}

std::uint32_t HashOf(std::uint64_t units) {
  return static_cast<std::uint32_t>((units * 0x9e3779b97f4a7c15U) >> 32U);
}

}  // namespace

SpaceAllocator::SpaceAllocator(std::uint64_t size_bytes)
    : capacity_units_(size_bytes / kSpaceUnitBytes) {
  const MutexLock lock(mutex_);
  bins_.fill(kNil);
  if (capacity_units_ > 0) {
    AddRange(0, capacity_units_);
  }
}

std::size_t SpaceAllocator::BinOf(std::uint64_t units) {
  if (units < 8) {
    return static_cast<std::size_t>(units);
  }
  const auto octave = static_cast<std::size_t>(std::bit_width(units)) - 1;  // At least 3.
  return (octave - 2) * 8 + ((units >> (octave - 3)) & 7U);
}

std::size_t SpaceAllocator::NextBin(std::size_t bin) const {
  std::size_t word = bin / 64;
  if (word >= occupied_.size()) {
    return kBins;
  }
  std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (bin % 64));
  while (bits == 0) {
    if (++word == occupied_.size()) {
      return kBins;
    }
    bits = occupied_[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

std::uint32_t SpaceAllocator::FirstFit(std::size_t bin, std::uint64_t units, int tries) const {
  std::uint32_t node = bins_[bin];
  for (; node != kNil && nodes_[node].length < units; node = nodes_[node].next) {
    if (--tries == 0) {
      return kNil;
    }
  }
  return node;
}

std::uint32_t SpaceAllocator::FindFit(std::uint64_t units) const {
  const std::size_t own = BinOf(units);
  if (const std::uint32_t node = FirstFit(own, units, kQuickTries); node != kNil) {
    return node;
  }
  if (const std::size_t bin = NextBin(own + 1); bin != kBins) {
    return bins_[bin];
  }
  return FirstFit(own, units, kLastTries);
}

std::uint32_t SpaceAllocator::FindByBegin(std::uint64_t begin) const {
  const Node* nodes = nodes_.data();
  return by_begin_.Find(HashOf(begin),
                        [nodes, begin](std::uint32_t node) { return nodes[node].begin == begin; });
}

std::uint32_t SpaceAllocator::FindByEnd(std::uint64_t end) const {
  const Node* nodes = nodes_.data();
  return by_end_.Find(HashOf(end), [nodes, end](std::uint32_t node) {
    return nodes[node].begin + nodes[node].length == end;
  });
}

void SpaceAllocator::AddRange(std::uint64_t begin, std::uint64_t length) {
  std::uint32_t node = unused_;
  if (node != kNil) {
    unused_ = nodes_[node].next;
  } else {
    node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  }
  const std::size_t bin = BinOf(length);
  nodes_[node] = Node{begin, length, kNil, bins_[bin]};
  if (bins_[bin] != kNil) {
    nodes_[bins_[bin]].previous = node;
  }
  bins_[bin] = node;
  occupied_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  by_begin_.Insert(HashOf(begin), node);
  by_end_.Insert(HashOf(begin + length), node);
  free_units_ += length;
  ++live_;
}

void SpaceAllocator::DropRange(std::uint32_t node) {
  const Node range = nodes_[node];
  const std::size_t bin = BinOf(range.length);
  if (range.previous != kNil) {
    nodes_[range.previous].next = range.next;
  } else {
    bins_[bin] = range.next;
    if (range.next == kNil) {
      occupied_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
    }
  }
  if (range.next != kNil) {
    nodes_[range.next].previous = range.previous;
  }
  by_begin_.Erase(HashOf(range.begin), node);
  by_end_.Erase(HashOf(range.begin + range.length), node);
  free_units_ -= range.length;
  --live_;
  nodes_[node].next = unused_;
  unused_ = node;
}

std::uint64_t SpaceAllocator::TakeFront(std::uint32_t node, std::uint64_t units) {
  const Node range = nodes_[node];
  DropRange(node);
  if (range.length > units) {
    AddRange(range.begin + units, range.length - units);
  }
  return range.begin;
}

std::optional<SpaceRange> SpaceAllocator::Allocate(std::uint64_t bytes) {
  MC_CHECK(bytes != 0);
  const std::uint64_t units = UnitsOf(bytes);
  const MutexLock lock(mutex_);
  if (units > free_units_) {
    return std::nullopt;
  }
  const std::uint32_t node = FindFit(units);
  if (node == kNil) {
    return std::nullopt;
  }
  return SpaceRange{TakeFront(node, units) * kSpaceUnitBytes, bytes};
}

bool SpaceAllocator::AllocateScattered(std::uint64_t bytes, std::size_t max_ranges,
                                       std::vector<SpaceRange>& out) {
  MC_CHECK(bytes != 0);
  const MutexLock lock(mutex_);
  std::uint64_t missing = UnitsOf(bytes);
  if (missing > free_units_) {
    return false;
  }
  scratch_.clear();
  for (std::size_t bin = kBins; bin-- > 0 && missing > 0;) {
    for (std::uint32_t node = bins_[bin]; node != kNil && missing > 0; node = nodes_[node].next) {
      if (scratch_.size() == max_ranges) {
        return false;
      }
      scratch_.push_back(node);
      missing -= std::min(missing, nodes_[node].length);
    }
  }
  std::uint64_t left = bytes;
  for (const std::uint32_t node : scratch_) {
    const std::uint64_t length = std::min(left, nodes_[node].length * kSpaceUnitBytes);
    out.push_back({TakeFront(node, UnitsOf(length)) * kSpaceUnitBytes, length});
    left -= length;
  }
  return true;
}

bool SpaceAllocator::Reserve(SpaceRange range) {
  const std::uint64_t units = UnitsOf(range.length_bytes);
  const std::uint64_t begin = range.offset_bytes / kSpaceUnitBytes;
  if (units == 0 || range.offset_bytes % kSpaceUnitBytes != 0 || begin >= capacity_units_ ||
      units > capacity_units_ - begin) {
    return false;
  }
  const MutexLock lock(mutex_);
  std::uint32_t found = kNil;
  for (std::size_t bin = NextBin(BinOf(units)); bin != kBins && found == kNil;
       bin = NextBin(bin + 1)) {
    for (std::uint32_t node = bins_[bin]; node != kNil; node = nodes_[node].next) {
      if (nodes_[node].begin <= begin &&
          begin + units <= nodes_[node].begin + nodes_[node].length) {
        found = node;
        break;
      }
    }
  }
  if (found == kNil) {
    return false;
  }
  const Node around = nodes_[found];
  DropRange(found);
  if (around.begin < begin) {
    AddRange(around.begin, begin - around.begin);
  }
  if (begin + units < around.begin + around.length) {
    AddRange(begin + units, around.begin + around.length - begin - units);
  }
  return true;
}

void SpaceAllocator::FreeUnits(std::uint64_t begin, std::uint64_t length) {
  MC_CHECK(length != 0 && begin < capacity_units_ && length <= capacity_units_ - begin);
  if (const std::uint32_t before = FindByEnd(begin); before != kNil) {
    begin = nodes_[before].begin;
    length += nodes_[before].length;
    DropRange(before);
  }
  if (const std::uint32_t after = FindByBegin(begin + length); after != kNil) {
    length += nodes_[after].length;
    DropRange(after);
  }
  AddRange(begin, length);
}

void SpaceAllocator::Free(std::span<const SpaceRange> ranges) {
  const MutexLock lock(mutex_);
  for (const SpaceRange& range : ranges) {
    FreeUnits(range.offset_bytes / kSpaceUnitBytes, UnitsOf(range.length_bytes));
  }
  MC_CHECK(free_units_ <= capacity_units_);
  ShrinkIfSparse();
}

void SpaceAllocator::ShrinkIfSparse() {
  if (nodes_.size() <= kShrinkAboveNodes || live_ * 4 > nodes_.size()) {
    return;
  }
  std::vector<SpaceRange> ranges;
  ranges.reserve(live_);
  for (std::size_t bin = NextBin(0); bin != kBins; bin = NextBin(bin + 1)) {
    for (std::uint32_t node = bins_[bin]; node != kNil; node = nodes_[node].next) {
      ranges.push_back({nodes_[node].begin, nodes_[node].length});
    }
  }
  std::vector<Node>().swap(nodes_);
  nodes_.reserve(live_ * 2);
  unused_ = kNil;
  live_ = 0;
  free_units_ = 0;
  by_begin_ = {};
  by_end_ = {};
  bins_.fill(kNil);
  occupied_.fill(0);
  for (const SpaceRange& range : ranges) {
    AddRange(range.offset_bytes, range.length_bytes);
  }
}

std::vector<SpaceRange> SpaceAllocator::FreeRanges() const {
  std::vector<SpaceRange> ranges;
  const MutexLock lock(mutex_);
  for (std::size_t bin = NextBin(0); bin != kBins; bin = NextBin(bin + 1)) {
    for (std::uint32_t node = bins_[bin]; node != kNil; node = nodes_[node].next) {
      ranges.push_back(
          {nodes_[node].begin * kSpaceUnitBytes, nodes_[node].length * kSpaceUnitBytes});
    }
  }
  std::ranges::sort(ranges);
  return ranges;
}

std::size_t SpaceAllocator::memory_bytes() const {
  const MutexLock lock(mutex_);
  return nodes_.capacity() * sizeof(Node) + by_begin_.memory_bytes() + by_end_.memory_bytes();
}

}  // namespace mooncake::store
