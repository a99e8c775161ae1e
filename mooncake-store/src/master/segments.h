// The memory that clients offer: which segments are mounted, in which state, and who gets what of
// them. Ranges that readers may still look at rest here until their last lease has ended.
//
// Sans-I/O. Thread-safety: any thread; leaf locks. Who decides on a change of segments holds its
// own lock until it has applied it. At() takes none: it is for shards, which hold a range of the
// segment, so that it cannot go.
//
// Life of a segment: mounted (kOk) -> [kGracefullyUnmounting ->] kUnmounting, when it is neither
// readable nor allocatable and the shards drop its objects step by step -> gone, when its number
// becomes free. If the owner was only thought dead, a mount of the same id and memory while it is
// kUnmounting makes it kOk again, with the objects not yet dropped: nobody wrote there meanwhile. A
// mount after it is gone starts empty, and nothing is placed there before the last lease given on
// it has ended.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/event.h"
#include "mooncake-store/src/master/options.h"
#include "mooncake-store/src/master/space.h"

namespace mooncake::store {

inline constexpr SegmentNumber kMaxSegments = 16384;

struct Segment {
  Segment(const SegmentEvent& mounted)
      : identity(mounted.identity),
        info(mounted.info),
        owner(mounted.owner),
        quiet_until_ns(mounted.quiet_until.time_since_epoch().count()),
        space(mounted.info.size_bytes) {}

  const SegmentIdentity identity;
  const SegmentInfo info;
  const Uuid owner;
  const std::int64_t quiet_until_ns;
  SpaceAllocator space;
  std::atomic<SegmentStatus> status{SegmentStatus::kOk};
  std::atomic<bool> owner_left{false};
  std::atomic<std::uint64_t> status_changes{0};
  std::atomic<std::uint64_t> in_flight_bytes{0};
  std::atomic<std::int64_t> resting_until_ns{std::numeric_limits<std::int64_t>::min()};
};

// A picture of the table, for decisions that look at many segments.
struct SegmentView {
  struct Name {  // Segments that share a name and take new objects.
    std::string name;
    std::string host_id;
    std::vector<Segment*> segments;
  };
  std::uint64_t version = 0;
  std::vector<std::shared_ptr<Segment>> by_number;  // Null where no segment is.
  std::vector<std::uint8_t> readable;               // By number: 1 or 0.
  std::vector<Name> names;                          // In the order of names.
  std::size_t readable_count = 0;
  std::uint64_t capacity_bytes = 0;  // Of the readable ones.
};

class SegmentTable {
 public:
  SegmentTable(MasterCounters& counters, std::uint64_t seed);

  struct MountDecision {
    StoreCode code = StoreCode::kOk;
    SegmentIdentity identity;
    std::optional<SegmentEvent> event;  // Nothing to change when it was mounted already.
  };
  // Errors: kInvalidParams (zero id, no name, under kMinSegmentBytes, end beyond the address
  // space), kSegmentAlreadyExists (the id is mounted by somebody else, or with another range),
  // kUnavailableInCurrentStatus (the owner unmounted it and it is not gone yet: again, soon),
  // kInternalError (no number is free).
  // `quiet_until`: nothing is placed there before, whatever this table knows of the segment.
  [[nodiscard]] MountDecision DecideMount(const SegmentInfo& info, const Uuid& owner, Instant now,
                                          Instant quiet_until = Instant::min());

  void Apply(const SegmentEvent& event);

  // Null when no such segment is mounted. Valid while the caller knows that it stays: see above.
  [[nodiscard]] Segment* At(SegmentNumber number) const {
    return number < kMaxSegments ? fast_[number].load(std::memory_order_acquire) : nullptr;
  }

  [[nodiscard]] std::optional<SegmentIdentity> FindById(const Uuid& id) const;
  [[nodiscard]] std::vector<SegmentIdentity> OwnedBy(const Uuid& owner) const;
  // Those whose grace has ended.
  [[nodiscard]] std::vector<SegmentIdentity> GraceEnded(Instant now) const;
  // Those that are being dropped, and their status_changes.
  [[nodiscard]] std::vector<std::pair<SegmentIdentity, std::uint64_t>> Unmounting() const;

  // Refreshes `view` if it is out of date.
  void Refresh(std::shared_ptr<const SegmentView>& view) const;

  // Gives ranges back: at once if `until` is past, else when it is. `resting` ones are counted.
  void Release(std::span<const PlacedExtent> extents, Instant until, Instant now);

  // When the first range that rests will be free; Instant::max() if none rests.
  [[nodiscard]] Instant NextRested() const {
    return Instant(Duration(next_rested_ns_.load(std::memory_order_relaxed)));
  }
  // Frees those whose time has come; others get at the table and at what rests in between.
  void ApplyRested(Instant now);

  // Adds the ranges that rest, by segment number, to what has that many entries.
  void AppendResting(std::vector<std::vector<SpaceRange>>& by_number) const;

  // All of its state as text, for comparisons.
  [[nodiscard]] std::string Dump() const;

 private:
  struct Resting {
    Instant until;
    SegmentIdentity identity;
    SpaceRange range;
    bool operator>(const Resting& other) const { return until > other.until; }
  };

  // True when none is left whose time has come.
  [[nodiscard]] bool FreeSomeRested(Instant now);
  [[nodiscard]] SegmentNumber FreeNumber() const MC_REQUIRES(mutex_);
  void Changed() MC_REQUIRES(mutex_);

  MasterCounters& counters_;
  std::vector<std::atomic<Segment*>> fast_;
  std::atomic<std::uint64_t> version_{1};

  mutable Mutex mutex_;
  Rng rng_ MC_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Segment>> segments_ MC_GUARDED_BY(mutex_);
  std::unordered_map<Uuid, SegmentNumber> by_id_ MC_GUARDED_BY(mutex_);
  std::unordered_map<SegmentNumber, Instant> unmount_at_ MC_GUARDED_BY(mutex_);
  // Ids that are gone but had leases, and until when.
  std::unordered_map<Uuid, Instant> quiet_ MC_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const SegmentView> view_ MC_GUARDED_BY(mutex_);

  mutable Mutex resting_mutex_;
  std::vector<Resting> resting_ MC_GUARDED_BY(resting_mutex_);  // A heap, the first to end on top.
  std::atomic<std::int64_t> next_rested_ns_{std::numeric_limits<std::int64_t>::max()};
};

}  // namespace mooncake::store
