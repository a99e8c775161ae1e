// The memory that this process has registered: who may touch which range, from where, and who is
// serving from it right now.
//
// Thread-safety: all methods, from any thread. Pin and Find take no lock and no shared counter but
//                the region's own: each thread keeps a copy of the sorted list, which is replaced
//                after a change.
// Ownership:     the table does not own the memory. A pinned region's memory stays registered until
//                the pin is gone: Remove waits for it. The table outlives its pins.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/metadata/segment_descriptor.h"

namespace mooncake::transfer {

struct Region {
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;      // Never zero, and address + length does not wrap.
  std::string location = "*";          // "*", "cpu:0", "cuda:1" ...
  bool remote_accessible = true;       // Listed in the descriptor.
  std::optional<SharedMemory> shared;  // Set when the pages are those of a sealed memfd.
};

// Half-open: [begin, end).
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] bool Contains(std::uint64_t address, std::uint64_t length_bytes) const {
    return address >= begin && address <= end && length_bytes <= end - address;
  }
};

class RegionTable;

// Keeps a region registered while somebody moves bytes from or to it. Empty when the range asked
// for is not inside one region. Movable; may be released on another thread.
class RegionPin {
 public:
  RegionPin() = default;
  RegionPin(RegionPin&& other) noexcept;
  RegionPin& operator=(RegionPin&& other) noexcept;
  RegionPin(const RegionPin&) = delete;
  RegionPin& operator=(const RegionPin&) = delete;
  ~RegionPin() { Reset(); }

  [[nodiscard]] explicit operator bool() const { return entry_ != nullptr; }
  [[nodiscard]] const Region& region() const;  // Only when not empty.
  void Reset();

 private:
  friend class RegionTable;
  struct Entry;
  RegionPin(RegionTable* table, Entry* entry) : table_(table), entry_(entry) {}

  RegionTable* table_ = nullptr;
  Entry* entry_ = nullptr;
};

class RegionTable {
 public:
  // Who asks: the process itself, or a peer that may only see what was registered for it.
  enum class Access : std::uint8_t { kLocal, kRemote };

  RegionTable();
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Adds all regions, or none.
  //
  // Errors: kInvalidArgument for a zero length or a range that wraps; kAddressOverlapped when a
  // region overlaps another of the table or of `regions`.
  [[nodiscard]] Result<void> Add(std::span<const Region> regions);
  [[nodiscard]] Result<void> Add(const Region& region) { return Add(std::span(&region, 1)); }

  // Takes the region that begins at `address` out: no new pin is given from now on, and the call
  // returns once no old one is left.
  //
  // Errors: kAddressNotRegistered; kTimeout when it is still pinned after `patience`. Then the
  // memory must not be freed yet; call again to go on waiting.
  [[nodiscard]] Result<Region> Remove(std::uint64_t address, Duration patience);

  // A pin on the region that holds the whole range, else an empty one.
  [[nodiscard]] RegionPin Pin(std::uint64_t address, std::uint64_t length_bytes,
                              Access access = Access::kRemote);

  // The bounds of the region that holds the whole range: what Find said stays true until that
  // region is removed, so a caller may remember it for the requests of one call.
  [[nodiscard]] std::optional<AddressRange> Find(std::uint64_t address,
                                                 std::uint64_t length_bytes) const;

  // Whether any byte of the range is registered.
  [[nodiscard]] bool Overlaps(std::uint64_t address, std::uint64_t length_bytes) const;

  // All regions, by address. A copy.
  [[nodiscard]] std::vector<Region> Regions() const;

 private:
  friend class RegionPin;
  using Entry = RegionPin::Entry;
  using Snapshot = std::vector<std::shared_ptr<Entry>>;  // By address.

  [[nodiscard]] const Snapshot& Current() const;
  [[nodiscard]] static Entry* Locate(const Snapshot& snapshot, std::uint64_t address,
                                     std::uint64_t length_bytes);
  void Replace(std::shared_ptr<const Snapshot> next) MC_REQUIRES(mutex_);
  void Unpin(Entry& entry);

  // Unique in the process, so that a thread's copy is never taken for one of a later table at the
  // same place.
  const std::uint64_t id_;
  std::atomic<std::uint64_t> version_ = 1;
  mutable Mutex mutex_;
  CondVar unpinned_;
  std::shared_ptr<const Snapshot> snapshot_ MC_GUARDED_BY(mutex_);
  Snapshot leaving_ MC_GUARDED_BY(mutex_);  // Removed, but still pinned.
};

}  // namespace mooncake::transfer
