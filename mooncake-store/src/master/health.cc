#include "mooncake-store/src/master/health.h"

#include <fmt/format.h>

#include <algorithm>

namespace mooncake::store {

void SegmentHealth::Apply(const HealthEvent& event, const SegmentView& view) {
  const Instant until = event.now + kHideFor;
  const MutexLock lock(mutex_);
  BringUpTo(event.now, view.readable_count);
  for (const SegmentIdentity& identity : event.segments) {
    if (identity.number >= view.by_number.size() || !view.by_number[identity.number] ||
        view.by_number[identity.number]->identity != identity) {
      continue;
    }
    Reported& reported = reports_.by_segment[identity.number];
    if (reported.incarnation != identity.incarnation) {
      while (!reported.until.empty()) {
        Withdraw(identity.number, Uuid(reported.until.begin()->first));
      }
      reported.incarnation = identity.incarnation;
    }
    const auto own = reported.until.find(event.client);
    if (own != reported.until.end()) {
      reports_.endings.erase({own->second, identity.number, event.client});
      own->second = until;
    } else if (reported.until.size() < kMaxReporters) {
      reported.until.emplace(event.client, until);
      Reporter& reporter = reports_.by_client[event.client];
      reporter.segments.insert(identity.number);
      AddVoices(identity.number, reported, reporter.believed ? 1 : 0);
      Believe(reporter);
    } else {
      continue;
    }
    reports_.endings.insert({until, identity.number, event.client});
    last_until_ns_ = std::max(last_until_ns_.load(), until.time_since_epoch().count());
  }
}

void SegmentHealth::BringUpTo(Instant now, std::size_t mounted) const {
  while (!reports_.endings.empty() && reports_.endings.begin()->until <= now) {
    const Ending ending = *reports_.endings.begin();
    Withdraw(ending.number, ending.client);
    if (reports_.by_segment[ending.number].until.empty()) {
      reports_.by_segment.erase(ending.number);
    }
  }
  if (reports_.mounted != mounted) {
    reports_.mounted = mounted;
    for (auto& [client, reporter] : reports_.by_client) {
      Believe(reporter);
    }
  }
}

void SegmentHealth::Withdraw(SegmentNumber number, const Uuid& client) const {
  Reported& reported = reports_.by_segment[number];
  const auto own = reported.until.find(client);
  reports_.endings.erase({own->second, number, client});
  reported.until.erase(own);
  const auto found = reports_.by_client.find(client);
  Reporter& reporter = found->second;
  reporter.segments.erase(number);
  AddVoices(number, reported, reporter.believed ? -1 : 0);
  if (reporter.segments.empty()) {
    reports_.by_client.erase(found);
  } else {
    Believe(reporter);
  }
}

void SegmentHealth::Believe(Reporter& reporter) const {
  const bool believed = reporter.segments.size() * 2 <= reports_.mounted;
  if (reporter.believed != believed) {
    reporter.believed = believed;
    for (const SegmentNumber number : reporter.segments) {
      AddVoices(number, reports_.by_segment[number], believed ? 1 : -1);
    }
  }
}

void SegmentHealth::AddVoices(SegmentNumber number, Reported& reported, int voices) const {
  const auto order_of = [this](std::size_t count) MC_REQUIRES(mutex_) {
    return count == 0                   ? nullptr
           : count < kQuarantineReports ? &reports_.few_voices
                                        : &reports_.enough_voices;
  };
  std::set<SegmentNumber>* before = order_of(reported.voices);
  reported.voices += static_cast<std::size_t>(voices);  // Adding -1 wraps around to subtracting.
  std::set<SegmentNumber>* after = order_of(reported.voices);
  if (before == after) {
    return;
  }
  if (before != nullptr) {
    before->erase(number);
  }
  if (after != nullptr) {
    after->insert(number);
  }
}

bool SegmentHealth::Confirmed(const Segment& segment, const Reported& reported,
                              const ClientMonitor& owners, Instant now) {
  const bool silent = owners.SilentFor(segment.owner, now) >= kOwnerSilent;
  return reported.voices > 0 && reported.voices + (silent ? 1 : 0) >= kQuarantineReports;
}

void SegmentHealth::Hide(const Uuid& client, const SegmentView& view, const ClientMonitor& owners,
                         Instant now, std::vector<std::uint8_t>& readable) const {
  const MutexLock lock(mutex_);
  BringUpTo(now, view.readable_count);
  // The report, if the segment is shown and still the one that was reported.
  const auto shown = [&](SegmentNumber number) MC_REQUIRES(mutex_) -> const Reported* {
    if (number >= readable.size() || readable[number] == 0) {
      return nullptr;
    }
    const Reported& reported = reports_.by_segment[number];
    return reported.incarnation == view.by_number[number]->identity.incarnation ? &reported
                                                                                : nullptr;
  };
  if (const auto own = reports_.by_client.find(client); own != reports_.by_client.end()) {
    for (const SegmentNumber number : own->second.segments) {
      if (shown(number) != nullptr) {
        readable[number] = 0;
      }
    }
  }
  for (const SegmentNumber number : reports_.enough_voices) {
    if (shown(number) != nullptr) {
      readable[number] = 0;
    }
  }
  if (owners.AnySilentFor(kOwnerSilent, now)) {
    for (const SegmentNumber number : reports_.few_voices) {
      const Reported* reported = shown(number);
      if (reported != nullptr && Confirmed(*view.by_number[number], *reported, owners, now)) {
        readable[number] = 0;
      }
    }
  }
}

bool SegmentHealth::Quarantined(const Segment& segment, const SegmentView& view,
                                const ClientMonitor& owners, Instant now) const {
  const MutexLock lock(mutex_);
  BringUpTo(now, view.readable_count);
  const auto found = reports_.by_segment.find(segment.identity.number);
  return found != reports_.by_segment.end() &&
         found->second.incarnation == segment.identity.incarnation &&
         Confirmed(segment, found->second, owners, now);
}

std::string SegmentHealth::Dump(Instant now) const {
  std::string text;
  const MutexLock lock(mutex_);
  for (const auto& [number, reported] : reports_.by_segment) {
    for (const auto& [client, until] : reported.until) {
      if (until > now) {
        text += fmt::format("segment {} reported by {} until {}\n", number, client.ToString(),
                            until.time_since_epoch().count());
      }
    }
  }
  return text;
}

}  // namespace mooncake::store
