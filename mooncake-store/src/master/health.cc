#include "mooncake-store/src/master/health.h"

#include <fmt/format.h>

#include <algorithm>

namespace mooncake::store {

namespace {

constexpr std::size_t kMaxReportersPerSegment = 64;

std::size_t Mounted(const SegmentView& view) {
  return static_cast<std::size_t>(std::ranges::count(view.readable, 1));
}

}  // namespace

void SegmentHealth::Apply(const HealthEvent& event, const SegmentView& view) {
  const Instant until = event.now + kHideFor;
  const MutexLock lock(mutex_);
  for (auto at = reports_.begin(); at != reports_.end();) {
    std::erase_if(at->second.until,
                  [&](const auto& reporter) { return reporter.second <= event.now; });
    at = at->second.until.empty() ? reports_.erase(at) : std::next(at);
  }
  for (const SegmentIdentity& identity : event.segments) {
    if (identity.number >= view.by_number.size() || !view.by_number[identity.number] ||
        view.by_number[identity.number]->identity != identity) {
      continue;
    }
    Reports& reports = reports_[identity.number];
    if (reports.incarnation != identity.incarnation) {
      reports = {.incarnation = identity.incarnation};
    }
    if (reports.until.size() < kMaxReportersPerSegment || reports.until.contains(event.client)) {
      reports.until[event.client] = until;
      last_until_ns_ = std::max(last_until_ns_.load(), until.time_since_epoch().count());
    }
  }
}

std::size_t SegmentHealth::ReportedBy(const Uuid& client, Instant now) const {
  std::size_t count = 0;
  for (const auto& [number, reports] : reports_) {
    const auto found = reports.until.find(client);
    count += found != reports.until.end() && found->second > now ? 1 : 0;
  }
  return count;
}

bool SegmentHealth::QuarantinedLocked(const Segment& segment, const Reports& reports,
                                      std::size_t mounted, const ClientMonitor& owners,
                                      Instant now) const {
  if (reports.incarnation != segment.identity.incarnation) {
    return false;
  }
  std::size_t count = owners.SilentFor(segment.owner, now) >= kOwnerSilent ? 1 : 0;
  std::size_t reporters = 0;
  for (const auto& [client, until] : reports.until) {
    if (until > now && ReportedBy(client, now) * 2 <= mounted) {
      ++reporters;
    }
  }
  count += reporters;
  return reporters > 0 && count >= kQuarantineReports;
}

void SegmentHealth::Hide(const Uuid& client, const SegmentView& view, const ClientMonitor& owners,
                         Instant now, std::vector<std::uint8_t>& readable) const {
  const std::size_t mounted = Mounted(view);
  const MutexLock lock(mutex_);
  for (const auto& [number, reports] : reports_) {
    if (number >= readable.size() || readable[number] == 0) {
      continue;
    }
    const Segment& segment = *view.by_number[number];
    const auto own = reports.until.find(client);
    const bool hidden = own != reports.until.end() && own->second > now &&
                        reports.incarnation == segment.identity.incarnation;
    if (hidden || QuarantinedLocked(segment, reports, mounted, owners, now)) {
      readable[number] = 0;
    }
  }
}

bool SegmentHealth::Quarantined(const Segment& segment, const SegmentView& view,
                                const ClientMonitor& owners, Instant now) const {
  const std::size_t mounted = Mounted(view);
  const MutexLock lock(mutex_);
  const auto found = reports_.find(segment.identity.number);
  return found != reports_.end() && QuarantinedLocked(segment, found->second, mounted, owners, now);
}

std::string SegmentHealth::Dump(Instant now) const {
  std::string text;
  const MutexLock lock(mutex_);
  for (const auto& [number, reports] : reports_) {
    for (const auto& [client, until] : reports.until) {
      if (until > now) {
        text += fmt::format("segment {} reported by {} until {}\n", number, client.ToString(),
                            until.time_since_epoch().count());
      }
    }
  }
  return text;
}

}  // namespace mooncake::store
