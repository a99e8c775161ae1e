// Liveness, segments, and what the passing of time brings.
#include <algorithm>
#include <chrono>

#include "mooncake-store/src/master/master_scratch.h"

namespace mooncake::store {

namespace {

// A shard is held for so many objects at a time, so that others get in between.
constexpr std::size_t kPerLock = 64;

}  // namespace

void Master::Handle(const PingRequest& request, Instant now, PingReply& reply) {
  NoteBegin(now);
  CountCaller(request.caller);
  const bool known = clients_.Known(request.caller.client);
  if (known) {
    Seen(request.caller.client, now);
  }
  reply = {.view_version = options_.view_version,
           .status = known ? ClientStatus::kOk : ClientStatus::kNeedRemount,
           .client_ttl_ms = static_cast<std::uint64_t>(
               std::chrono::duration_cast<std::chrono::milliseconds>(options_.client_ttl).count())};
}

template <typename Condition>
bool Master::ChangeSegment(const SegmentEvent& event, Condition only_if) {
  const MutexLock lock(segments_change_mutex_);
  const Segment* segment = segments_.At(event.identity.number);
  if (segment == nullptr || segment->identity != event.identity || !only_if(*segment)) {
    return false;
  }
  ApplySegment(event);
  return true;
}

MountSegmentReply Master::Mount(const SegmentInfo& info, const Uuid& owner, Instant now,
                                Instant quiet_until) {
  const MutexLock lock(segments_change_mutex_);
  const SegmentTable::MountDecision decision = segments_.DecideMount(info, owner, now, quiet_until);
  if (decision.event) {
    ApplySegment(*decision.event);
  }
  return {.code = decision.code, .identity = decision.identity};
}

void Master::Handle(const MountSegmentRequest& request, Instant now, MountSegmentReply& reply) {
  Seen(request.caller.client, now);
  reply = Mount(request.segment, request.caller.client, now,
                request.repeated ? EarlierLeasesUntil() : now);
}

void Master::Handle(const ReMountSegmentsRequest& request, Instant now,
                    ReMountSegmentsReply& reply) {
  reply = {};
  if (request.segments.size() > kMaxSegments) {
    reply.code = StoreCode::kInvalidParams;
    return;
  }
  Seen(request.caller.client, now);
  for (const SegmentInfo& info : request.segments) {
    reply.segments.push_back(Mount(info, request.caller.client, now, EarlierLeasesUntil()));
  }
}

void Master::Handle(const UnmountSegmentRequest& request, Instant now, UnmountSegmentReply& reply) {
  reply = {};
  const auto identity = segments_.FindById(request.segment);
  if (!identity) {
    return;  // Gone is what was asked for.
  }
  SegmentEvent event{.kind = SegmentEventKind::kStatus, .now = now, .identity = *identity};
  if (request.grace_ms > 0) {
    event.status = SegmentStatus::kGracefullyUnmounting;
    event.unmount_at = now + std::chrono::milliseconds(std::min(request.grace_ms, kMaxGraceMs));
  } else {
    event.status = SegmentStatus::kUnmounting;
    event.owner_left = true;
  }
  (void)ChangeSegment(event, [&](const Segment& segment) {
    if (segment.owner != request.caller.client) {
      reply.code = StoreCode::kInvalidParams;
      return false;
    }
    return segment.status != SegmentStatus::kUnmounting;
  });
}

void Master::Handle(const QuerySegmentsRequest& request, Instant now, QuerySegmentsReply& reply) {
  reply = {};
  for (SegmentReport& report : ReportSegments(now)) {
    if (request.numbers.empty() ||
        std::ranges::find(request.numbers, report.segment.identity.number) !=
            request.numbers.end()) {
      reply.segments.push_back(std::move(report.segment));
    }
  }
}

void Master::Handle(const ReportFailedReadsRequest& request, Instant now,
                    ReportFailedReadsReply& reply) {
  reply = {};
  ++counters_.failed_read_reports;
  Replay(HealthEvent{.client = request.caller.client, .segments = request.segments, .now = now});
}

// ---- The passing of time ----

bool Master::Tick(Instant now, std::size_t budget) {
  NoteBegin(now);
  FreeRested(now);
  DropLostClients(now);
  for (const SegmentIdentity& identity : segments_.GraceEnded(now)) {
    (void)ChangeSegment({.kind = SegmentEventKind::kStatus,
                         .now = now,
                         .identity = identity,
                         .status = SegmentStatus::kUnmounting,
                         .owner_left = true},
                        [](const Segment& segment) {
                          return segment.status == SegmentStatus::kGracefullyUnmounting;
                        });
  }
  budget = DropSegments(now, budget);
  budget = EndTimeouts(now, budget);
  hub_.DrainIfGrown();
  return budget == 0;
}

void Master::DropLostClients(Instant now) {
  for (const Uuid& client : clients_.Silent(now)) {
    const ClientEvent event{.kind = ClientEventKind::kLost, .client = client, .now = now};
    clients_.Apply(event);
    if (sink_ != nullptr) {
      sink_->OnClient(event);
    }
    ++counters_.clients_expired;
    for (const SegmentIdentity& identity : segments_.OwnedBy(client)) {
      (void)ChangeSegment(
          {.kind = SegmentEventKind::kStatus,
           .now = now,
           .identity = identity,
           .status = SegmentStatus::kUnmounting},
          [](const Segment& segment) { return segment.status != SegmentStatus::kUnmounting; });
    }
  }
}

std::size_t Master::DropSegments(Instant now, std::size_t budget) {
  for (const auto& [identity, changes] : segments_.Unmounting()) {
    for (const auto& shard : shards_) {
      bool more = true;
      while (more && budget > 0) {
        const MutexLock lock(shard->mutex());
        for (std::size_t count = 0; more && budget > 0 && count < kPerLock; ++count) {
          const auto event = shard->DecideLost(identity.number, now);
          more = event.has_value();
          if (more) {
            shard->Apply(*event);
            --budget;
          }
        }
        shard->Flush();
      }
    }
    if (budget == 0) {
      return 0;
    }
    // No shard holds a range there any more; none will, unless its owner mounted it again
    // meanwhile.
    (void)ChangeSegment(
        {.kind = SegmentEventKind::kGone, .now = now, .identity = identity},
        [changed = changes](const Segment& segment) { return segment.status_changes == changed; });
  }
  return budget;
}

std::size_t Master::EndTimeouts(Instant now, std::size_t budget) {
  for (const auto& shard : shards_) {
    bool more = true;
    while (more && budget > 0) {
      const MutexLock lock(shard->mutex());
      for (std::size_t count = 0; more && budget > 0 && count < kPerLock; ++count) {
        const auto event = shard->DecideTimeout(now);
        more = event.has_value();
        if (more) {
          shard->Apply(*event);
          --budget;
        }
      }
      shard->Flush();
    }
  }
  return budget;
}

void Master::EndPins(Instant now) {
  next_pin_end_ns_ = Instant::max().time_since_epoch().count();
  for (const auto& shard : shards_) {
    Instant next = now;
    while (next <= now) {
      const MutexLock lock(shard->mutex());
      for (std::size_t count = 0; shard->NextPinEnd() <= now && count < kPerLock; ++count) {
        shard->Apply(*shard->DecideTimeout(now));
      }
      shard->Flush();
      next = shard->NextPinEnd();
    }
    if (next.time_since_epoch().count() < next_pin_end_ns_) {
      next_pin_end_ns_ = next.time_since_epoch().count();
    }
  }
}

}  // namespace mooncake::store
