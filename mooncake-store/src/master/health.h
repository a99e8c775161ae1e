// Which segments cannot be read although their owners ping, from what readers report.
//
// A report hides the segment from the reporter at once: its next lookup says "not there" instead of
// leading it into the same dead end. It hides it from everybody (quarantine: no reads, no new
// objects) when a second client reports the same, or when the owner has been silent for a while
// too. A client that reports more than half of all segments is more likely broken itself: its
// reports count for itself only. Reports are forgotten after kHideFor, so that what works again
// comes back, and what does not is reported again.
//
// Sans-I/O. Thread-safety: any thread; one lock, none while nobody reports; below it the client
//                monitor's.
// Cost:          of a lookup, what is hidden from its client; only while some owner is silent also
//                the segments that a single client reported. A report costs O(log n), and so does
//                its end. Whose reports count is kept up as they come and go.
// Bounds:        kMaxReporters reporters a segment.
#pragma once

#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <set>
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
  static constexpr std::size_t kMaxReporters = 64;

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
  struct Reported {  // A segment.
    std::uint64_t incarnation = 0;
    std::map<Uuid, Instant> until;  // By reporter.
    std::size_t voices = 0;         // Those of them that are believed.
  };
  struct Reporter {
    std::set<SegmentNumber> segments;
    bool believed = true;
  };
  struct Ending {
    Instant until;
    SegmentNumber number;
    Uuid client;
    friend auto operator<=>(const Ending&, const Ending&) = default;
  };
  // All reports that are alive, in three orders.
  struct Reports {
    std::map<SegmentNumber, Reported> by_segment;
    std::map<Uuid, Reporter> by_client;
    std::set<Ending> endings;
    std::set<SegmentNumber> few_voices;     // Fewer than kQuarantineReports, but some.
    std::set<SegmentNumber> enough_voices;  // As many or more.
    std::size_t mounted = 0;                // Segments, when it was decided who is believed.
  };

  // Forgets what is over. Decides anew who is believed if the number of segments has changed.
  void BringUpTo(Instant now, std::size_t mounted) const MC_REQUIRES(mutex_);
  void Withdraw(SegmentNumber number, const Uuid& client) const MC_REQUIRES(mutex_);
  void Believe(Reporter& reporter) const MC_REQUIRES(mutex_);
  void AddVoices(SegmentNumber number, Reported& reported, int voices) const MC_REQUIRES(mutex_);
  [[nodiscard]] static bool Confirmed(const Segment& segment, const Reported& reported,
                                      const ClientMonitor& owners, Instant now);

  mutable Mutex mutex_;
  // Changed by questions too: they say how far time has come.
  mutable Reports reports_ MC_GUARDED_BY(mutex_);
  std::atomic<std::int64_t> last_until_ns_{std::numeric_limits<std::int64_t>::min()};
};

}  // namespace mooncake::store
