// Which segments cannot be read although their owners ping, from what readers report.
//
// A report hides the segment from the reporter at once: its next lookup says "not there" instead of
// leading it into the same dead end. It hides it from everybody (quarantine: no reads, no new
// objects) when a second client reports the same, or when the owner has been silent for a while
// too. A client that reports more than half of all segments is more likely broken itself: its
// reports count for itself only. Reports are forgotten after kHideFor, so that what works again
// comes back, and what does not is reported again.
//
// Sans-I/O. Thread-safety: any thread; one leaf lock, none while nobody reports.
#pragma once

#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/master/clients.h"
#include "mooncake-store/src/master/segments.h"

namespace mooncake::store {

class SegmentHealth {
 public:
  static constexpr Duration kHideFor = std::chrono::seconds(5);
  static constexpr Duration kOwnerSilent = std::chrono::milliseconds(2500);  // Pings come each 1 s.
  static constexpr std::size_t kQuarantineReports = 2;

  // Segments that are not mounted (any more) are passed over.
  void Apply(const HealthEvent& event, const SegmentView& view) MC_EXCLUDES(mutex_);

  // Whether any report is alive: if not, view.readable holds for everybody.
  [[nodiscard]] bool AnyReport(Instant now) const {
    return now.time_since_epoch().count() < last_until_ns_.load(std::memory_order_relaxed);
  }
  // Clears in `readable` what is hidden from `client`.
  void Hide(const Uuid& client, const SegmentView& view, const ClientMonitor& owners, Instant now,
            std::vector<std::uint8_t>& readable) const MC_EXCLUDES(mutex_);
  [[nodiscard]] bool Quarantined(const Segment& segment, const SegmentView& view,
                                 const ClientMonitor& owners, Instant now) const
      MC_EXCLUDES(mutex_);
  [[nodiscard]] std::string Dump(Instant now) const MC_EXCLUDES(mutex_);

 private:
  struct Reports {
    std::uint64_t incarnation = 0;
    std::map<Uuid, Instant> until;  // By reporter.
  };
  [[nodiscard]] bool QuarantinedLocked(const Segment& segment, const Reports& reports,
                                       std::size_t mounted, const ClientMonitor& owners,
                                       Instant now) const MC_REQUIRES(mutex_);
  [[nodiscard]] std::size_t ReportedBy(const Uuid& client, Instant now) const MC_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<SegmentNumber, Reports> reports_ MC_GUARDED_BY(mutex_);
  std::atomic<std::int64_t> last_until_ns_{std::numeric_limits<std::int64_t>::min()};
};

}  // namespace mooncake::store
