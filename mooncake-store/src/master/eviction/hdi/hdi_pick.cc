// The choice of victims.
#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

#include "mooncake-store/src/master/eviction/hdi/hdi.h"

namespace mooncake::store {

namespace {

constexpr std::uint32_t kOutOfReach = 0xffffffff;
constexpr std::uint32_t kLongestDig = 4096;  // Objects that hang on each other.
constexpr int kDigsDrawn = 16;
constexpr int kMostDigs = 1024;  // A pick.
constexpr std::uint32_t kMostDigSteps = 65536;

}  // namespace

struct HdiPolicy::PickState {
  const PickRequest& request;
  SlotGuard& guard;
  std::size_t kinds = 1;                    // Of ChainForest's lists.
  std::array<std::size_t, 2> ends{};        // In sources_, when they were found.
  std::vector<Candidate>* pool = nullptr;   // Where candidates come from and go to.
  std::uint32_t dig_steps = kMostDigSteps;  // Left for looking for what hangs on what.
  std::size_t inner_steps = 0;              // Left for searching inner objects.
};

void HdiPolicy::FindSources(PickState& pick, bool everywhere) {
  std::vector<Source>& sources = sources_[static_cast<std::size_t>(everywhere)];
  sources.clear();
  std::size_t ends = 0;
  for (std::size_t number = 0; number < forest_.segment_count(); ++number) {
    const auto segment = static_cast<SegmentNumber>(number);
    if (!everywhere && !pick.request.segments->Has(segment)) {
      continue;
    }
    for (std::size_t kind = 0; kind < pick.kinds; ++kind) {
      if (const std::size_t count = forest_.Ends(segment, kind).size(); count > 0) {
        ends += count;
        sources.push_back({.segment = segment, .kind = kind, .end = ends});
      }
    }
  }
  pick.ends[static_cast<std::size_t>(everywhere)] = ends;
}

Slot HdiPolicy::Draw(PickState& pick, bool everywhere) {
  const auto which = static_cast<std::size_t>(everywhere);
  // Lists that have become shorter since they were counted are counted again.
  for (;; FindSources(pick, everywhere)) {
    if (pick.ends[which] == 0) {
      return kNoSlot;
    }
    const std::size_t number = rng_.Uniform(pick.ends[which]);
    const auto source = std::ranges::upper_bound(sources_[which], number, {}, &Source::end);
    const std::size_t begin = source == sources_[which].begin() ? 0 : (source - 1)->end;
    const std::span<const Slot> list = forest_.Ends(source->segment, source->kind);
    if (number - begin < list.size()) {
      return list[number - begin];
    }
  }
}

bool HdiPolicy::MayGo(PickState& pick, Slot slot) {
  if (pick.guard.MayGo(slot)) {
    return true;
  }
  forest_.Rest(slot, pick.guard.BoundUntilNs(slot));
  return false;
}

bool HdiPolicy::Eligible(PickState& pick, Slot slot) {
  const ChainForest::Node* node = forest_.Find(slot);
  return node != nullptr && node->listing() == ChainForest::State::kListed &&
         slot != pick.request.keep && node->pin < pick.kinds &&
         forest_.LiesOn(slot, *pick.request.segments) && MayGo(pick, slot);
}

void HdiPolicy::AddCandidate(Slot slot) {
  const ChainForest::Node& node = forest_.At(slot);
  candidates_.push_back({.slot = slot,
                         .last = node.last,
                         .worth = hazards_.Worth(node.reuse.cls, tick_ - node.last)});
}

bool HdiPolicy::IsCandidate(Slot slot) const {
  return std::ranges::find(candidates_, slot, &Candidate::slot) != candidates_.end();
}

void HdiPolicy::KeepLowest() {
  while (candidates_.size() > kPool) {
    const auto highest = std::ranges::max_element(candidates_, {}, &Candidate::worth);
    *highest = candidates_.back();
    candidates_.pop_back();
  }
}

void HdiPolicy::FitWhenDue() {
  if (fit_due_) {
    fit_due_ = false;
    hazards_.Fit();
  }
}

void HdiPolicy::Begin(PickState& pick) {
  FitWhenDue();
  const Slot resting = forest_.WakeRested(pick.guard.now_ns(),
                                          [&](Slot slot) { return pick.guard.BoundUntilNs(slot); });
  if (resting != kNoSlot) {
    (void)pick.guard.MayGo(resting);  // The guard notes when something may go.
  }
  FindSources(pick, false);
  const std::vector<Source>& sources = sources_[0];
  const bool several = !sources.empty() && sources.front().segment != sources.back().segment;
  pick.pool = &pools_[several || sources.empty() ? kSeveral : sources.front().segment];
  candidates_.clear();
  for (const Candidate& kept : *pick.pool) {
    const ChainForest::Node* node = forest_.Find(kept.slot);
    if (node != nullptr && node->last == kept.last && !IsCandidate(kept.slot) &&
        Eligible(pick, kept.slot)) {
      AddCandidate(kept.slot);
    }
  }
}

template <typename Wanted>
Slot HdiPolicy::Search(PickState& pick, bool everywhere, Wanted wanted) {
  FindSources(pick, everywhere);
  for (const Source& source : sources_[static_cast<std::size_t>(everywhere)]) {
    for (std::size_t at = 0; at < forest_.Ends(source.segment, source.kind).size();) {
      const Slot slot = forest_.Ends(source.segment, source.kind)[at];
      if (slot == pick.request.keep) {
        ++at;
      } else if (!MayGo(pick, slot)) {
        continue;  // Another has taken its place.
      } else if (wanted(slot)) {
        return slot;
      } else {
        ++at;
      }
    }
  }
  return kNoSlot;
}

Slot HdiPolicy::Choose(PickState& pick) {
  int kept = 0;
  for (std::size_t drawn = 0; drawn < kDrawn;) {
    const Slot slot = Draw(pick, false);
    if (slot == kNoSlot || kept == 8) {
      break;
    }
    if (slot == pick.request.keep) {
      ++kept;
    } else if (IsCandidate(slot)) {
      ++drawn;
    } else if (MayGo(pick, slot)) {
      AddCandidate(slot);
      ++drawn;
    }
  }
  if (candidates_.empty()) {
    return Search(pick, false, [](Slot) { return true; });
  }
  const auto lowest =
      std::ranges::min_element(candidates_, [&](const Candidate& a, const Candidate& b) {
        return a.worth != b.worth ? a.worth < b.worth : tick_ - a.last > tick_ - b.last;
      });
  const Slot victim = lowest->slot;
  *lowest = candidates_.back();
  candidates_.pop_back();
  KeepLowest();
  return victim;
}

std::uint32_t HdiPolicy::StepsToWanted(PickState& pick, Slot slot) {
  const ChainForest::Node* node = &forest_.At(slot);
  for (std::uint32_t steps = 1; steps < kLongestDig; ++steps) {
    pick.dig_steps -= static_cast<std::uint32_t>(pick.dig_steps > 0);
    if (!forest_.HasParent(*node)) {
      break;
    }
    const Slot above = node->parent;
    node = &forest_.At(above);
    if (above == pick.request.keep || node->pin >= pick.kinds ||
        pick.guard.BoundUntilNs(above) > pick.guard.now_ns()) {
      return kOutOfReach;
    }
    if (forest_.LiesOn(above, *pick.request.segments)) {
      return steps;
    }
  }
  return kOutOfReach;
}

Slot HdiPolicy::Dig(PickState& pick) {
  FindSources(pick, true);
  Slot best = kNoSlot;
  std::uint32_t best_steps = kOutOfReach;
  for (int drawn = 0; drawn < kDigsDrawn; ++drawn) {
    const Slot slot = Draw(pick, true);
    if (slot == kNoSlot) {
      return kNoSlot;
    }
    if (slot == pick.request.keep || !MayGo(pick, slot)) {
      continue;
    }
    if (const std::uint32_t steps = StepsToWanted(pick, slot); steps < best_steps) {
      best = slot;
      best_steps = steps;
    }
  }
  if (best != kNoSlot) {
    return best;
  }
  const Slot found = Search(pick, true, [&](Slot slot) {
    return pick.dig_steps == 0 || StepsToWanted(pick, slot) != kOutOfReach;
  });
  return pick.dig_steps == 0 ? kNoSlot : found;
}

Slot HdiPolicy::ChooseInner(PickState& pick) {
  const SegmentMask& segments = *pick.request.segments;
  const std::uint64_t changes = forest_.InnerChanges(segments);
  const bool known = inner_bound_.kinds == pick.kinds && inner_bound_.changes == changes &&
                     inner_bound_.segments.HasAll(segments) &&
                     segments.HasAll(inner_bound_.segments);
  if (known && inner_bound_.until_ns > pick.guard.now_ns()) {
    if (forest_.Find(inner_bound_.first) != nullptr) {
      (void)pick.guard.MayGo(inner_bound_.first);  // The guard notes when something may go.
    }
    return kNoSlot;
  }
  bool all_bound = pick.inner_steps == forest_.slots();  // Of what this search sees: all.
  InnerBound bound{.segments = segments,
                   .kinds = pick.kinds,
                   .changes = changes,
                   .until_ns = std::numeric_limits<std::int64_t>::max()};
  const Slot found = forest_.SearchInner(pick.inner_steps, [&](Slot slot,
                                                               const ChainForest::Node& node) {
    if (node.pin >= pick.kinds || !forest_.LiesOn(slot, segments)) {
      return false;
    }
    if (pick.guard.MayGo(slot)) {
      all_bound = false;
      return slot != pick.request.keep;
    }
    if (const std::int64_t until_ns = pick.guard.BoundUntilNs(slot); until_ns < bound.until_ns) {
      bound.until_ns = until_ns;
      bound.first = slot;
    }
    return false;
  });
  if (all_bound) {
    inner_bound_ = std::move(bound);
  }
  return found;
}

bool HdiPolicy::KeptMayGo(PickState& pick) {
  const Slot slot = pick.request.keep;
  const ChainForest::Node* node = forest_.Find(slot);
  return node != nullptr && node->ready != 0 && node->pin < pick.kinds &&
         forest_.LiesOn(slot, *pick.request.segments) && pick.guard.MayGo(slot);
}

void HdiPolicy::Pick(const PickRequest& request, SlotGuard& guard, std::vector<Slot>& out) {
  PickState pick{.request = request,
                 .guard = guard,
                 .kinds = request.soft_pinned_too ? 2U : 1U,
                 .inner_steps = forest_.slots()};
  Begin(pick);
  const std::size_t before = out.size();
  std::uint64_t freed = 0;
  int digs = 0;
  while (freed < request.bytes) {
    Slot victim = Choose(pick);
    if (victim == kNoSlot && digs < kMostDigs) {
      ++digs;
      victim = Dig(pick);
    }
    if (victim == kNoSlot) {
      break;
    }
    out.push_back(victim);
    freed += forest_.BytesOn(victim, *request.segments);
    const Slot parent = forest_.Take(victim);
    if (parent != kNoSlot && Eligible(pick, parent)) {
      AddCandidate(parent);
    }
  }
  *pick.pool = candidates_;
  // What was chosen goes only when the shards drop it; some may have been leased meanwhile.
  for (const Slot slot : out | std::views::drop(before) | std::views::reverse) {
    forest_.Undo(slot);
  }
  if (out.size() > before) {
    return;
  }
  // All ends are bound. A hole in a chain is better than to refuse a write.
  while (freed < request.bytes) {
    const Slot victim = ChooseInner(pick);
    if (victim == kNoSlot) {
      break;
    }
    out.push_back(victim);
    freed += forest_.BytesOn(victim, *request.segments);
  }
  if (out.size() == before && KeptMayGo(pick)) {
    out.push_back(request.keep);
  }
}

}  // namespace mooncake::store
