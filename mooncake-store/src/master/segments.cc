#include "mooncake-store/src/master/segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

namespace {

bool Readable(SegmentStatus status) {
  return status == SegmentStatus::kOk || status == SegmentStatus::kDraining ||
         status == SegmentStatus::kDrained || status == SegmentStatus::kGracefullyUnmounting;
}

}  // namespace

SegmentTable::SegmentTable(MasterCounters& counters, std::uint64_t seed)
    : counters_(counters), fast_(kMaxSegments), rng_(seed) {}

SegmentNumber SegmentTable::FreeNumber() const {
  const auto found = std::ranges::find(segments_, nullptr);
  return static_cast<SegmentNumber>(found - segments_.begin());
}

SegmentTable::MountDecision SegmentTable::DecideMount(const SegmentInfo& info, const Uuid& owner,
                                                      Instant now, Instant quiet_until) {
  if (info.id.IsZero() || info.name.empty() || info.size_bytes < kMinSegmentBytes ||
      info.base_address + info.size_bytes < info.base_address) {
    return {.code = StoreCode::kInvalidParams};
  }
  const MutexLock lock(mutex_);
  if (const auto found = by_id_.find(info.id); found != by_id_.end()) {
    const Segment& segment = *segments_[found->second];
    if (segment.owner != owner || segment.info != info) {
      return {.code = StoreCode::kSegmentAlreadyExists};
    }
    MountDecision decision{.identity = segment.identity};
    if (segment.owner_left && segment.status == SegmentStatus::kUnmounting) {
      return {.code = StoreCode::kUnavailableInCurrentStatus};
    }
    if (segment.status == SegmentStatus::kUnmounting) {
      decision.event = SegmentEvent{.kind = SegmentEventKind::kStatus,
                                    .now = now,
                                    .identity = segment.identity,
                                    .status = SegmentStatus::kOk};
    }
    return decision;
  }
  const SegmentNumber number = FreeNumber();
  if (number >= kMaxSegments) {
    return {.code = StoreCode::kInternalError};
  }
  const SegmentIdentity identity{number, rng_.Next() | 1U};
  const auto quiet = quiet_.find(info.id);
  return {.identity = identity,
          .event = SegmentEvent{
              .kind = SegmentEventKind::kMounted,
              .now = now,
              .identity = identity,
              .info = info,
              .owner = owner,
              .quiet_until = std::max(quiet_until, quiet == quiet_.end() ? now : quiet->second)}};
}

void SegmentTable::Apply(const SegmentEvent& event) {
  const SegmentNumber number = event.identity.number;
  const MutexLock lock(mutex_);
  if (event.kind == SegmentEventKind::kMounted) {
    if (number >= segments_.size()) {
      segments_.resize(number + 1);
    }
    MC_CHECK(!segments_[number]);
    segments_[number] = std::make_shared<Segment>(event);
    by_id_[event.info.id] = number;
    quiet_.erase(event.info.id);
    fast_[number].store(segments_[number].get(), std::memory_order_release);
  } else if (number < segments_.size() && segments_[number] &&
             segments_[number]->identity == event.identity) {
    Segment& segment = *segments_[number];
    unmount_at_.erase(number);
    if (event.kind == SegmentEventKind::kStatus) {
      segment.status = event.status;
      segment.owner_left = event.owner_left;
      ++segment.status_changes;
      if (event.status == SegmentStatus::kGracefullyUnmounting) {
        unmount_at_[number] = event.unmount_at;
      }
    } else {
      std::erase_if(quiet_, [&](const auto& entry) { return entry.second <= event.now; });
      const Instant rest_until{Duration(segment.resting_until_ns.load())};
      if (rest_until > event.now) {
        quiet_[segment.info.id] = rest_until;
      }
      by_id_.erase(segment.info.id);
      fast_[number].store(nullptr, std::memory_order_release);
      segments_[number].reset();
    }
  }
  Changed();
}

void SegmentTable::Changed() {
  view_.reset();
  version_.fetch_add(1, std::memory_order_release);
}

std::optional<SegmentIdentity> SegmentTable::FindById(const Uuid& id) const {
  const MutexLock lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::nullopt : std::optional(segments_[found->second]->identity);
}

std::vector<SegmentIdentity> SegmentTable::OwnedBy(const Uuid& owner) const {
  std::vector<SegmentIdentity> owned;
  const MutexLock lock(mutex_);
  for (const auto& segment : segments_) {
    if (segment && segment->owner == owner) {
      owned.push_back(segment->identity);
    }
  }
  return owned;
}

std::vector<SegmentIdentity> SegmentTable::GraceEnded(Instant now) const {
  std::vector<SegmentIdentity> ended;
  const MutexLock lock(mutex_);
  for (const auto& [number, at] : unmount_at_) {
    if (at <= now) {
      ended.push_back(segments_[number]->identity);
    }
  }
  std::ranges::sort(ended, {}, &SegmentIdentity::number);
  return ended;
}

std::vector<std::pair<SegmentIdentity, std::uint64_t>> SegmentTable::Unmounting() const {
  std::vector<std::pair<SegmentIdentity, std::uint64_t>> unmounting;
  const MutexLock lock(mutex_);
  for (const auto& segment : segments_) {
    if (segment && segment->status == SegmentStatus::kUnmounting) {
      unmounting.emplace_back(segment->identity, segment->status_changes);
    }
  }
  return unmounting;
}

void SegmentTable::Refresh(std::shared_ptr<const SegmentView>& view) const {
  if (view && view->version == version_.load(std::memory_order_acquire)) {
    return;
  }
  const MutexLock lock(mutex_);
  if (!view_) {
    auto fresh = std::make_shared<SegmentView>();
    fresh->version = version_.load(std::memory_order_relaxed);
    fresh->by_number = segments_;
    fresh->readable.resize(segments_.size());
    std::map<std::string, SegmentView::Name> names;
    for (const auto& segment : segments_) {
      if (!segment || !Readable(segment->status)) {
        continue;
      }
      fresh->readable[segment->identity.number] = 1;
      ++fresh->readable_count;
      fresh->capacity_bytes += segment->space.capacity_bytes();
      if (segment->status == SegmentStatus::kOk) {
        SegmentView::Name& name = names[segment->info.name];
        name.name = segment->info.name;
        name.host_id = segment->info.host_id;
        name.segments.push_back(segment.get());
      }
    }
    for (auto& [text, name] : names) {
      fresh->names.push_back(std::move(name));
    }
    view_ = std::move(fresh);
  }
  view = view_;
}

void SegmentTable::Release(std::span<const PlacedExtent> extents, Instant until, Instant now) {
  for (const PlacedExtent& extent : extents) {
    Segment* segment = At(extent.segment);
    MC_CHECK(segment != nullptr);
    if (until <= now) {
      segment->space.Free(std::span(&extent.range, 1));
      continue;
    }
    std::int64_t latest = segment->resting_until_ns.load(std::memory_order_relaxed);
    while (latest < until.time_since_epoch().count() &&
           !segment->resting_until_ns.compare_exchange_weak(latest,
                                                            until.time_since_epoch().count())) {
    }
    counters_.resting_bytes += RoundUpToSpaceUnits(extent.range.length_bytes);
    const MutexLock lock(resting_mutex_);
    resting_.push_back({until, segment->identity, extent.range});
    std::ranges::push_heap(resting_, std::greater{});
    next_rested_ns_.store(resting_.front().until.time_since_epoch().count());
  }
}

void SegmentTable::ApplyRested(Instant now) {
  while (!FreeSomeRested(now)) {
  }
}

bool SegmentTable::FreeSomeRested(Instant now) {
  constexpr int kPerLock = 64;
  const MutexLock table_lock(mutex_);
  const MutexLock lock(resting_mutex_);
  const auto due = [&]() MC_REQUIRES(resting_mutex_) {
    return !resting_.empty() && resting_.front().until <= now;
  };
  for (int count = 0; due() && count < kPerLock; ++count) {
    std::ranges::pop_heap(resting_, std::greater{});
    const Resting rested = resting_.back();
    resting_.pop_back();
    counters_.resting_bytes -= RoundUpToSpaceUnits(rested.range.length_bytes);
    const SegmentNumber number = rested.identity.number;
    // The segment may be gone, and its number another's.
    if (number < segments_.size() && segments_[number] &&
        segments_[number]->identity == rested.identity) {
      segments_[number]->space.Free(std::span(&rested.range, 1));
    }
  }
  next_rested_ns_.store(resting_.empty() ? std::numeric_limits<std::int64_t>::max()
                                         : resting_.front().until.time_since_epoch().count());
  return !due();
}

void SegmentTable::AppendResting(std::vector<std::vector<SpaceRange>>& by_number) const {
  const MutexLock lock(resting_mutex_);
  for (const Resting& resting : resting_) {
    const Segment* segment = At(resting.identity.number);
    if (segment != nullptr && segment->identity == resting.identity &&
        resting.identity.number < by_number.size()) {
      by_number[resting.identity.number].push_back(
          {resting.range.offset_bytes, RoundUpToSpaceUnits(resting.range.length_bytes)});
    }
  }
}

std::string SegmentTable::Dump() const {
  std::string text;
  {
    const MutexLock lock(mutex_);
    for (const auto& segment : segments_) {
      if (!segment) {
        continue;
      }
      text += fmt::format(
          "segment {}/{} {} of {} status {} in flight {} free", segment->identity.number,
          segment->identity.incarnation, segment->info.name, segment->owner.ToString(),
          static_cast<int>(segment->status.load()), segment->in_flight_bytes.load());
      for (const SpaceRange& range : segment->space.FreeRanges()) {
        text += fmt::format(" {}+{}", range.offset_bytes, range.length_bytes);
      }
      text += '\n';
    }
    std::map<SegmentNumber, Instant> leaving(unmount_at_.begin(), unmount_at_.end());
    for (const auto& [number, at] : leaving) {
      text += fmt::format("unmount {} at {}\n", number, at.time_since_epoch().count());
    }
  }
  const MutexLock lock(resting_mutex_);
  std::vector<std::string> lines;
  lines.reserve(resting_.size());
  for (const Resting& resting : resting_) {
    lines.push_back(fmt::format("resting {}/{} {}+{} until {}\n", resting.identity.number,
                                resting.identity.incarnation, resting.range.offset_bytes,
                                resting.range.length_bytes,
                                resting.until.time_since_epoch().count()));
  }
  std::ranges::sort(lines);
  for (const std::string& line : lines) {
    text += line;
  }
  return text;
}

}  // namespace mooncake::store
