#include "mooncake-store/src/master/placement.h"

#include <algorithm>
#include <set>

#include "mooncake-common/src/base/mix.h"

namespace mooncake::store {

namespace {

bool Usable(const Segment& segment, const PlaceRequest& request) {
  return segment.identity.number < request.usable.size() &&
         request.usable[segment.identity.number] != 0 &&
         segment.quiet_until_ns <= request.now.time_since_epoch().count();
}

bool AnyUsable(const SegmentView::Name& name, const PlaceRequest& request) {
  return std::ranges::any_of(name.segments,
                             [&](const Segment* segment) { return Usable(*segment, request); });
}

bool Holds(const SegmentView& view, std::span<const PlacedExtent> placed,
           const SegmentView::Name& name) {
  return std::ranges::any_of(placed, [&](const PlacedExtent& extent) {
    return view.by_number[extent.segment]->info.name == name.name;
  });
}

const SegmentView::Name* FindName(const SegmentView& view, std::string_view name) {
  const auto found = std::ranges::lower_bound(view.names, name, {}, &SegmentView::Name::name);
  return found != view.names.end() && found->name == name ? &*found : nullptr;
}

// One replica after another.
class Placing {
 public:
  Placing(const SegmentView& view, const PlaceRequest& request, std::vector<PlacedExtent>& out)
      : view_(view),
        request_(request),
        out_(out),
        have_(out.empty() ? 0 : out.back().replica + 1U) {}

  std::uint32_t Run() {
    for (const std::string_view text : request_.preferred) {
      const SegmentView::Name* name = FindName(view_, text);
      if (!Done() && name != nullptr && !InOnePiece(*name)) {
        (void)InPieces(*name);
      }
    }
    if (!Done() && !request_.near_host.empty() && request_.replicas == 1) {
      Near();
    }
    const std::size_t count = view_.names.size();
    if (request_.strategy == AllocationStrategy::kFreeRatioFirst) {
      for (std::uint32_t tries = 0; tries < request_.replicas && !Done(); ++tries) {
        (void)InOnePiece(EmptierOfTwo());
      }
    }
    const std::size_t start = count == 0 ? 0 : Random() % count;
    for (std::size_t at = 0; at < count && !Done(); ++at) {
      (void)InOnePiece(view_.names[(start + at) % count]);
    }
    for (std::size_t at = 0; at < count && !Done(); ++at) {
      (void)InPieces(view_.names[(start + at) % count]);
    }
    if (have_ == 0 && !Done()) {
      AcrossSegments(start);
    }
    return have_;
  }

 private:
  [[nodiscard]] bool Done() const { return have_ >= request_.replicas; }

  std::uint64_t Random() {
    random_ += kMixStep;
    return Mix64(random_ ^ request_.random);
  }

  void Add(const Segment& segment, SpaceRange range) {
    out_.push_back({.segment = segment.identity.number,
                    .replica = static_cast<std::uint8_t>(have_),
                    .range = range});
  }

  bool InOnePiece(const SegmentView::Name& name) {
    if (have_ > 0 && Holds(view_, out_, name)) {
      return false;
    }
    const std::size_t count = name.segments.size();
    const std::size_t start = count == 1 ? 0 : Random() % count;
    for (std::size_t at = 0; at < count; ++at) {
      Segment& segment = *name.segments[(start + at) % count];
      if (!Usable(segment, request_) || segment.space.free_bytes() < request_.bytes) {
        continue;
      }
      if (const auto range = segment.space.Allocate(request_.bytes)) {
        Add(segment, *range);
        ++have_;
        return true;
      }
    }
    return false;
  }

  bool InPieces(const SegmentView::Name& name) {
    if (have_ > 0 && Holds(view_, out_, name)) {
      return false;
    }
    std::vector<SpaceRange> ranges;
    for (Segment* segment : name.segments) {
      if (Usable(*segment, request_) && segment->space.free_bytes() >= request_.bytes &&
          segment->space.AllocateScattered(request_.bytes, kMaxExtentsPerReplica, ranges)) {
        for (const SpaceRange& range : ranges) {
          Add(*segment, range);
        }
        ++have_;
        return true;
      }
    }
    return false;
  }

  void AcrossSegments(std::size_t start) {
    std::uint64_t left = request_.bytes;
    std::vector<SpaceRange> ranges;
    for (std::size_t at = 0; at < view_.names.size() && left > 0; ++at) {
      for (Segment* segment : view_.names[(start + at) % view_.names.size()].segments) {
        const std::uint64_t part = std::min(left, segment->space.free_bytes());
        ranges.clear();
        if (part == 0 || !Usable(*segment, request_) ||
            !segment->space.AllocateScattered(part, kMaxExtentsPerReplica - out_.size(), ranges)) {
          continue;
        }
        for (const SpaceRange& range : ranges) {
          Add(*segment, range);
        }
        left -= part;
        if (left == 0) {
          break;
        }
      }
    }
    if (left == 0) {
      have_ = 1;
      return;
    }
    for (const PlacedExtent& extent : out_) {
      view_.by_number[extent.segment]->space.Free(std::span(&extent.range, 1));
    }
    out_.clear();
  }

  // The better of two names drawn at random: the used ratios even out, and no node, however empty,
  // gets more than twice its share of the writes.
  const SegmentView::Name& EmptierOfTwo() {
    const std::size_t count = view_.names.size();
    const std::size_t one = Random() % count;
    const std::size_t two = count == 1 ? one : (one + 1 + Random() % (count - 1)) % count;
    return FreeRatio(view_.names[one]) >= FreeRatio(view_.names[two]) ? view_.names[one]
                                                                      : view_.names[two];
  }

  // Writes in flight count twice: they take space, and the node is busy with them.
  double FreeRatio(const SegmentView::Name& name) const {
    double free = 0;
    double capacity = 1;
    for (const Segment* segment : name.segments) {
      if (Usable(*segment, request_)) {
        free += static_cast<double>(segment->space.free_bytes()) -
                static_cast<double>(segment->in_flight_bytes.load(std::memory_order_relaxed));
        capacity += static_cast<double>(segment->space.capacity_bytes());
      }
    }
    return free / capacity;
  }

  // The writer's host first, then the others in cyclic order of their ids; within a host the names
  // in order, beginning at one that the key chooses.
  void Near() {
    std::set<std::string_view> hosts;
    for (const SegmentView::Name& name : view_.names) {
      if (!name.host_id.empty()) {
        hosts.insert(name.host_id);
      }
    }
    std::vector<std::string_view> order(hosts.lower_bound(request_.near_host), hosts.end());
    order.insert(order.end(), hosts.begin(), hosts.lower_bound(request_.near_host));
    for (const std::string_view host : order) {
      std::vector<const SegmentView::Name*> names;
      for (const SegmentView::Name& name : view_.names) {
        if (name.host_id == host) {
          names.push_back(&name);
        }
      }
      for (std::size_t at = 0; at < names.size() && !Done(); ++at) {
        const SegmentView::Name& name = *names[(request_.key_hash + at) % names.size()];
        if (!InOnePiece(name)) {
          (void)InPieces(name);
        }
      }
    }
  }

  const SegmentView& view_;
  const PlaceRequest& request_;
  std::vector<PlacedExtent>& out_;
  std::uint32_t have_;
  std::uint64_t random_ = 0;
};

}  // namespace

std::uint32_t Place(const SegmentView& view, const PlaceRequest& request,
                    std::vector<PlacedExtent>& out) {
  if (view.names.empty()) {
    return out.empty() ? 0 : out.back().replica + 1U;
  }
  return Placing(view, request, out).Run();
}

std::uint32_t UsableNames(const SegmentView& view, const PlaceRequest& request) {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      view.names, [&](const SegmentView::Name& name) { return AnyUsable(name, request); }));
}

SegmentMask WhereRoomHelps(const SegmentView& view, const PlaceRequest& request,
                           std::span<const PlacedExtent> placed, bool preferred_only) {
  SegmentMask mask;
  const auto add = [&](const SegmentView::Name& name) {
    if (Holds(view, placed, name)) {
      return;
    }
    for (const Segment* segment : name.segments) {
      if (Usable(*segment, request)) {
        mask.Add(segment->identity.number);
      }
    }
  };
  if (preferred_only) {
    for (const std::string_view text : request.preferred) {
      if (const SegmentView::Name* name = FindName(view, text)) {
        add(*name);
      }
    }
  }
  if (mask.Empty()) {
    std::ranges::for_each(view.names, add);
  }
  return mask;
}

}  // namespace mooncake::store
