// What this client knows of the segments that objects lie in: number -> where to reach it, learned
// once and replaced when the number is mounted anew.
//
// Thread-safety: any thread; one leaf lock inside. A PeerSegment is immutable but for its atomics.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/uuid.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/protocol/messages.h"

namespace mooncake::store {

// Smaller is nearer.
enum class Nearness : std::uint8_t { kOwn = 0, kSameHost = 1, kRemote = 2 };

struct PeerSegment {
  SegmentIdentity identity;
  SegmentInfo info;
  Uuid owner;
  Nearness nearness = Nearness::kRemote;

  // For the driver: what it opened for this segment; 0 = nothing yet. Any thread may set it.
  mutable std::atomic<std::uint64_t> driver_handle{0};
  // Reads and writes failed here; until this time other replicas are preferred.
  mutable std::atomic<Instant::rep> suspect_until{0};

  [[nodiscard]] bool IsSuspect(Instant now) const {
    return now.time_since_epoch().count() < suspect_until.load(std::memory_order_relaxed);
  }
  void Suspect(Instant until) const {
    suspect_until.store(until.time_since_epoch().count(), std::memory_order_relaxed);
  }
};

class PeerSegmentTable {
 public:
  // `client` and `host_id` tell how near a segment is.
  PeerSegmentTable(const Uuid& client, std::string_view host_id)
      : client_(client), host_id_(host_id) {}

  // The segment with that very incarnation; null when it has to be asked for.
  [[nodiscard]] std::shared_ptr<const PeerSegment> Find(SegmentNumber number,
                                                        std::uint64_t incarnation) const;

  // Takes what the master said, in place of any earlier incarnation. Keeps the known object (and
  // its handle) when nothing changed.
  void Learn(const QueriedSegment& queried);

  void Clear();

 private:
  const Uuid client_;
  const std::string host_id_;
  mutable Mutex mutex_;
  std::unordered_map<SegmentNumber, std::shared_ptr<const PeerSegment>> segments_
      MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::store
