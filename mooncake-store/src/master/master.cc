#include "mooncake-store/src/master/master.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/master/master_scratch.h"

namespace mooncake::store {

namespace {

MasterOptions WithPowerOfTwoShards(MasterOptions options) {
  options.shard_count = std::bit_ceil(std::clamp(options.shard_count, 2U, 4096U));
  return options;
}

}  // namespace

Master::Master(const MasterOptions& options, std::unique_ptr<EvictionPolicy> policy,
               EventSink* sink)
    : options_(WithPowerOfTwoShards(options)),
      sink_(sink),
      segments_(counters_, options.seed),
      clients_(options.client_ttl),
      hub_(std::move(policy)),
      last_version_(options.first_version),
      random_(options.seed),
      next_pin_end_ns_(std::numeric_limits<std::int64_t>::max()) {
  shard_shift_ = 64U - static_cast<unsigned>(std::countr_zero(options_.shard_count));
  const ShardContext context{options_, counters_, segments_, groups_, hub_, sink_};
  for (std::uint32_t number = 0; number < options_.shard_count; ++number) {
    shards_.push_back(std::make_unique<Shard>(number, context));
  }
}

Master::~Master() = default;

ReadableSegments Master::Readable(const Uuid& client, Instant now, Scratch& scratch) {
  segments_.Refresh(scratch.view);
  if (!health_.AnyReport(now)) {
    return scratch.view->readable;
  }
  scratch.readable = scratch.view->readable;
  health_.Hide(client, *scratch.view, clients_, now, scratch.readable);
  return scratch.readable;
}

void Master::CountCaller(const Caller& caller) {
  if (caller.cache_hits != 0) {
    counters_.gets += caller.cache_hits;
    counters_.get_hits += caller.cache_hits;
    counters_.hit_bytes += caller.cache_hit_bytes;
  }
}

void Master::NoteBegin(Instant now) {
  if (earlier_leases_until_ns_.load(std::memory_order_relaxed) == 0) [[unlikely]] {
    std::int64_t unknown = 0;
    earlier_leases_until_ns_.compare_exchange_strong(
        unknown, (now + options_.lease_ttl).time_since_epoch().count());
  }
}

void Master::Seen(const Uuid& client, Instant now) {
  NoteBegin(now);
  const ClientEvent event{.kind = ClientEventKind::kSeen, .client = client, .now = now};
  clients_.Apply(event);
  if (sink_ != nullptr) {
    sink_->OnClient(event);
  }
}

void Master::ApplySegment(const SegmentEvent& event) {
  segments_.Apply(event);
  if (sink_ != nullptr) {
    sink_->OnSegment(event);
  }
}

void Master::ApplyRecency(const RecencyEvent& event) {
  switch (event.kind) {
    case RecencyEventKind::kLookedUp:
      hub_.OnChain(event.chain, event.leased_until);
      break;
    case RecencyEventKind::kPut:
      hub_.OnPuts(event.puts, event.placements);
      break;
    case RecencyEventKind::kReady:
      hub_.OnReady(event.ready);
      break;
  }
  if (sink_ != nullptr) {
    sink_->OnRecency(event);
  }
}

void Master::FreeRested(Instant now) {
  if (segments_.NextRested() > now) {
    return;
  }
  segments_.ApplyRested(now);
  if (sink_ != nullptr) {
    sink_->OnRested(now);
  }
}

// ---- Replay ----

void Master::Replay(const ObjectEvent& event) {
  if (event.kind == ObjectEventKind::kPutStarted) {
    for (const PlacedExtent& extent : event.extents) {
      MC_CHECK(segments_.At(extent.segment)->space.Reserve(extent.range));
    }
    last_version_ = std::max(last_version_.load(), event.version);
  }
  Shard& shard = ShardOfSlot(event.slot);
  const MutexLock lock(shard.mutex());
  shard.Apply(event);
  shard.Flush();
}

void Master::Replay(const SegmentEvent& event) { ApplySegment(event); }

void Master::Replay(const ClientEvent& event) {
  clients_.Apply(event);
  if (sink_ != nullptr) {
    sink_->OnClient(event);
  }
}

void Master::Replay(const HealthEvent& event) {
  std::shared_ptr<const SegmentView> view;
  segments_.Refresh(view);
  health_.Apply(event, *view);
  if (sink_ != nullptr) {
    sink_->OnHealth(event);
  }
}

void Master::Replay(const RecencyEvent& event) { ApplyRecency(event); }

void Master::ReplayRested(Instant now) { FreeRested(now); }

// ---- For the admin interface and tests ----

std::vector<SegmentReport> Master::ReportSegments(Instant now) const {
  std::shared_ptr<const SegmentView> view;
  segments_.Refresh(view);
  std::vector<SegmentReport> reports;
  for (const auto& segment : view->by_number) {
    if (!segment) {
      continue;
    }
    const std::uint64_t capacity = segment->space.capacity_bytes();
    reports.push_back({.segment = {.identity = segment->identity,
                                   .info = segment->info,
                                   .owner = segment->owner,
                                   .status = segment->status},
                       .used_bytes = capacity - segment->space.free_bytes(),
                       .capacity_bytes = capacity,
                       .quarantined = health_.Quarantined(*segment, *view, clients_, now)});
  }
  return reports;
}

Master::Usage Master::MeasureUsage() const {
  std::shared_ptr<const SegmentView> view;
  segments_.Refresh(view);
  Usage usage{.capacity_bytes = view->capacity_bytes};
  for (const auto& segment : view->by_number) {
    if (segment && view->readable[segment->identity.number] != 0) {
      usage.used_bytes += segment->space.capacity_bytes() - segment->space.free_bytes();
    }
  }
  return usage;
}

std::size_t Master::MeasureMemory() {
  std::size_t bytes = 0;
  for (const auto& shard : shards_) {
    const MutexLock lock(shard->mutex());
    bytes += shard->memory_bytes();
  }
  return bytes;
}

std::string Master::Dump(Instant now) {
  std::string text = segments_.Dump() + clients_.Dump() + health_.Dump(now);
  for (const auto& shard : shards_) {
    const MutexLock lock(shard->mutex());
    text += shard->Dump();
  }
  return text;
}

}  // namespace mooncake::store
