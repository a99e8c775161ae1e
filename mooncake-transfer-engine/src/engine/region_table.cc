#include "mooncake-transfer-engine/src/engine/region_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace mooncake::transfer {

// `state` counts pins; its top bit says that the region is leaving. One word, so that a pin can
// tell "counted" from "too late" in one step.
struct RegionPin::Entry {
  explicit Entry(Region r) : region(std::move(r)) {}
  const Region region;
  std::atomic<std::uint64_t> state = 0;

  [[nodiscard]] std::uint64_t end() const { return region.address + region.length_bytes; }
};

namespace {

constexpr std::uint64_t kLeaving = std::uint64_t{1} << 63;

std::uint64_t NextTableId() {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1) + 1;
}

std::string Text(const Region& region) {
  return fmt::format("[{:#x}, +{})", region.address, region.length_bytes);
}

}  // namespace

RegionPin::RegionPin(RegionPin&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)), entry_(std::exchange(other.entry_, nullptr)) {}

RegionPin& RegionPin::operator=(RegionPin&& other) noexcept {
  if (this != &other) {
    Reset();
    table_ = std::exchange(other.table_, nullptr);
    entry_ = std::exchange(other.entry_, nullptr);
  }
  return *this;
}

const Region& RegionPin::region() const { return entry_->region; }

void RegionPin::Reset() {
  if (entry_ != nullptr) {
    std::exchange(table_, nullptr)->Unpin(*std::exchange(entry_, nullptr));
  }
}

RegionTable::RegionTable() : id_(NextTableId()), snapshot_(std::make_shared<const Snapshot>()) {}

RegionTable::~RegionTable() = default;

const RegionTable::Snapshot& RegionTable::Current() const {
  struct Copy {
    std::uint64_t table = 0;
    std::uint64_t version = 0;
    std::shared_ptr<const Snapshot> snapshot;
  };
  // A thread rarely works with more tables than this; if it does, it only takes the lock more
  // often.
  constexpr std::size_t kCopies = 4;
  thread_local std::array<Copy, kCopies> copies;
  Copy& copy = copies[id_ % kCopies];
  const std::uint64_t version = version_.load(std::memory_order_acquire);
  if (copy.table != id_ || copy.version != version) [[unlikely]] {
    std::shared_ptr<const Snapshot> fresh;
    std::uint64_t fresh_version = 0;
    {
      const MutexLock lock(mutex_);
      fresh = snapshot_;
      fresh_version = version_.load(std::memory_order_relaxed);
    }
    copy = Copy{.table = id_, .version = fresh_version, .snapshot = std::move(fresh)};
  }
  return *copy.snapshot;
}

RegionTable::Entry* RegionTable::Locate(const Snapshot& snapshot, std::uint64_t address,
                                        std::uint64_t length_bytes) {
  auto after = std::ranges::upper_bound(snapshot, address, {},
                                        [](const auto& e) { return e->region.address; });
  if (after == snapshot.begin()) {
    return nullptr;
  }
  Entry* entry = std::prev(after)->get();
  const AddressRange range{.begin = entry->region.address, .end = entry->end()};
  // An empty range at the very end lies in no region.
  return address < range.end && range.Contains(address, length_bytes) ? entry : nullptr;
}

void RegionTable::Replace(std::shared_ptr<const Snapshot> next) {
  snapshot_ = std::move(next);
  version_.fetch_add(1, std::memory_order_release);
}

Result<void> RegionTable::Add(std::span<const Region> regions) {
  for (const Region& region : regions) {
    if (region.length_bytes == 0) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("register memory at {:#x}: length is 0; give at least one byte",
                              region.address));
    }
    if (region.length_bytes > std::numeric_limits<std::uint64_t>::max() - region.address) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("register memory {}: range wraps around", Text(region)));
    }
  }
  const MutexLock lock(mutex_);
  auto next = std::make_shared<Snapshot>(*snapshot_);
  next->reserve(next->size() + regions.size());
  for (const Region& region : regions) {
    next->push_back(std::make_shared<Entry>(region));
  }
  std::ranges::sort(*next, {}, [](const auto& e) { return e->region.address; });
  const auto clash = std::ranges::adjacent_find(*next, [](const auto& left, const auto& right) {
    return left->end() > right->region.address;
  });
  if (clash != next->end()) {
    return Fail(ErrorCode::kAddressOverlapped,
                fmt::format("register memory: {} overlaps {}; unregister the older first",
                            Text((*clash)->region), Text((*std::next(clash))->region)));
  }
  // A region that is still leaving does not count: its owner asked to have it out.
  Replace(std::move(next));
  return {};
}

Result<Region> RegionTable::Remove(std::uint64_t address, Duration patience) {
  std::shared_ptr<Entry> entry;
  const auto begins_here = [address](const auto& e) { return e->region.address == address; };
  mutex_.lock();
  if (const auto it = std::ranges::find_if(*snapshot_, begins_here); it != snapshot_->end()) {
    entry = *it;
    auto next = std::make_shared<Snapshot>(*snapshot_);
    std::erase(*next, entry);
    Replace(std::move(next));
    leaving_.push_back(entry);
    entry->state.fetch_or(kLeaving);
  } else if (const auto old = std::ranges::find_if(leaving_, begins_here); old != leaving_.end()) {
    entry = *old;
  } else {
    mutex_.unlock();
    return Fail(ErrorCode::kAddressNotRegistered,
                fmt::format("unregister memory at {:#x}: no region begins there; give the address "
                            "that was registered",
                            address));
  }
  const Instant deadline = SteadyClock::Get().Now() + patience;
  while (entry->state.load() != kLeaving && unpinned_.WaitUntil(mutex_, deadline)) {
  }
  const bool free = entry->state.load() == kLeaving;
  if (free) {
    std::erase(leaving_, entry);
  }
  mutex_.unlock();
  if (!free) {
    return Fail(ErrorCode::kTimeout,
                fmt::format("unregister memory {}: a peer is still reading or writing it; keep the "
                            "memory and unregister again",
                            Text(entry->region)));
  }
  return entry->region;
}

RegionPin RegionTable::Pin(std::uint64_t address, std::uint64_t length_bytes, Access access) {
  Entry* entry = Locate(Current(), address, length_bytes);
  if (entry == nullptr || (access == Access::kRemote && !entry->region.remote_accessible)) {
    return {};
  }
  RegionPin pin(this, entry);
  // The thread's copy may be older than a Remove; the count and the mark are one word, so either
  // Remove sees this pin or this sees the mark.
  if ((entry->state.fetch_add(1) & kLeaving) != 0) {
    pin.Reset();
  }
  return pin;
}

void RegionTable::Unpin(Entry& entry) {
  std::uint64_t state = entry.state.load();
  while ((state & kLeaving) == 0) {
    if (entry.state.compare_exchange_weak(state, state - 1)) {
      return;
    }
  }
  // Under the lock: Remove must not see the count fall, return and let the table be destroyed
  // while this thread is still on its way to the notification.
  const MutexLock lock(mutex_);
  entry.state.fetch_sub(1);
  unpinned_.NotifyAll();
}

std::optional<AddressRange> RegionTable::Find(std::uint64_t address,
                                              std::uint64_t length_bytes) const {
  const Entry* entry = Locate(Current(), address, length_bytes);
  if (entry == nullptr) {
    return std::nullopt;
  }
  return AddressRange{.begin = entry->region.address, .end = entry->end()};
}

bool RegionTable::Overlaps(std::uint64_t address, std::uint64_t length_bytes) const {
  const Snapshot& snapshot = Current();
  const auto first =
      std::ranges::upper_bound(snapshot, address, {}, [](const auto& e) { return e->end(); });
  return length_bytes != 0 && first != snapshot.end() &&
         (*first)->region.address - std::min(address, (*first)->region.address) < length_bytes;
}

std::vector<Region> RegionTable::Regions() const {
  const Snapshot& snapshot = Current();
  std::vector<Region> regions;
  regions.reserve(snapshot.size());
  for (const auto& entry : snapshot) {
    regions.push_back(entry->region);
  }
  return regions;
}

}  // namespace mooncake::transfer
