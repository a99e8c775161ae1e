#include "mooncake-store/src/master/eviction/lru.h"

#include <ranges>

namespace mooncake::store {

LruPolicy::Node* LruPolicy::Known(Slot slot) {
  if (slot >= kFirstExtra) {
    return nullptr;
  }
  Node* node = nodes_.Find(slot);
  return node == nullptr || node->segment == kUnusedSegment ? nullptr : node;
}

LruPolicy::Node& LruPolicy::NodeAt(NodeId id) {
  return id < kFirstExtra ? nodes_.At(id) : extras_[id - kFirstExtra].node;
}

Slot LruPolicy::SlotOf(NodeId id) const {
  return id < kFirstExtra ? id : extras_[id - kFirstExtra].slot;
}

bool LruPolicy::Listed(const Node& first) {
  return first.ready != 0 && first.pin != static_cast<std::uint32_t>(PinClass::kHard);
}

std::size_t LruPolicy::KindOf(const Node& first) {
  return first.looked_up + (first.pin == static_cast<std::uint32_t>(PinClass::kSoft) ? 2U : 0U);
}

template <typename Visit>
void LruPolicy::ForEachNode(Slot slot, Visit visit) {
  visit(slot, nodes_.At(slot));
  if (extras_of_.empty()) {
    return;
  }
  if (const auto found = extras_of_.find(slot); found != extras_of_.end()) {
    for (const NodeId id : found->second) {
      visit(id, NodeAt(id));
    }
  }
}

void LruPolicy::Link(Slot slot, const Node& first) {
  const std::size_t kind = KindOf(first);
  ForEachNode(slot, [&](NodeId id, Node& node) {
    List& list = lists_[node.segment][kind];
    node.stamp = stamp_;
    node.newer = kNil;
    node.older = list.newest;
    if (list.newest != kNil) {
      NodeAt(list.newest).newer = id;
    } else {
      list.oldest = id;
    }
    list.newest = id;
  });
}

void LruPolicy::Unlink(Slot slot, const Node& first) {
  const std::size_t kind = KindOf(first);
  ForEachNode(slot, [&](NodeId, Node& node) {
    List& list = lists_[node.segment][kind];
    (node.newer != kNil ? NodeAt(node.newer).older : list.newest) = node.older;
    (node.older != kNil ? NodeAt(node.older).newer : list.oldest) = node.newer;
  });
}

void LruPolicy::OnChain(const ChainEvent& event) {
  // From the tail, so that the head of the chain becomes the newest.
  constexpr std::ptrdiff_t kAhead = 4;
  const auto size = static_cast<std::ptrdiff_t>(event.keys.size());
  for (std::ptrdiff_t at = size - 1; at >= 0; --at) {
    if (at >= kAhead && event.keys[at - kAhead].slot < kFirstExtra) {
      if (Node* soon = nodes_.Find(event.keys[at - kAhead].slot)) {
        __builtin_prefetch(soon);
      }
    }
    const Slot slot = event.keys[at].slot;
    Node* first = Known(slot);
    if (first == nullptr || !Listed(*first)) {
      continue;
    }
    ++stamp_;
    Unlink(slot, *first);
    first->looked_up = 1;
    Link(slot, *first);
  }
}

void LruPolicy::OnPut(const PutEvent& event) {
  if (event.placements.empty() || event.slot >= kFirstExtra) {
    return;
  }
  for (const Placement& placement : event.placements) {
    if (placement.segment >= lists_.size()) {
      lists_.resize(placement.segment + 1);
    }
  }
  Node& first = nodes_.Add(event.slot);
  first.segment = event.placements[0].segment;
  first.units = event.placements[0].units;
  first.pin = static_cast<std::uint32_t>(event.pin);
  for (const Placement& placement : event.placements.subspan(1)) {
    std::uint32_t index = 0;
    if (unused_extras_.empty()) {
      index = static_cast<std::uint32_t>(extras_.size());
      extras_.emplace_back();
    } else {
      index = unused_extras_.back();
      unused_extras_.pop_back();
    }
    Extra& extra = extras_[index];
    extra = {};
    extra.slot = event.slot;
    extra.node.segment = placement.segment;
    extra.node.units = placement.units;
    extras_of_[event.slot].push_back(kFirstExtra + index);
  }
}

void LruPolicy::OnReady(Slot slot) {
  Node* first = Known(slot);
  if (first == nullptr || first->ready != 0) {
    return;
  }
  ++stamp_;
  first->ready = 1;
  if (Listed(*first)) {
    Link(slot, *first);
  }
}

void LruPolicy::OnPin(Slot slot, PinClass pin) {
  Node* first = Known(slot);
  if (first == nullptr || first->pin == static_cast<std::uint32_t>(pin)) {
    return;
  }
  if (Listed(*first)) {
    Unlink(slot, *first);
  }
  ++stamp_;
  first->pin = static_cast<std::uint32_t>(pin);
  first->looked_up = 0;  // Its lease may end before those of objects now older than it.
  if (Listed(*first)) {
    Link(slot, *first);
  }
}

void LruPolicy::OnGone(Slot slot) {
  Node* first = Known(slot);
  if (first == nullptr) {
    return;
  }
  if (Listed(*first)) {
    Unlink(slot, *first);
  }
  if (const auto found = extras_of_.find(slot); found != extras_of_.end()) {
    for (const NodeId id : found->second) {
      unused_extras_.push_back(id - kFirstExtra);
    }
    extras_of_.erase(found);
  }
  nodes_.Remove(slot);
}

std::uint64_t LruPolicy::BytesOn(Slot slot, const SegmentMask& segments) {
  std::uint64_t units = 0;
  ForEachNode(slot, [&](NodeId, const Node& node) {
    units += segments.Has(node.segment) ? node.units : 0;
  });
  return units * 64;
}

void LruPolicy::Pick(const PickRequest& request, SlotGuard& guard, std::vector<Slot>& out) {
  cursors_.clear();
  for (std::size_t segment = 0; segment < lists_.size(); ++segment) {
    if (!request.segments->Has(static_cast<SegmentNumber>(segment))) {
      continue;
    }
    const std::size_t from = request.soft_pinned_too ? 2 : 0;
    for (std::size_t kind = from; kind < from + 2; ++kind) {
      if (lists_[segment][kind].oldest != kNil) {
        cursors_.push_back({.next = lists_[segment][kind].oldest, .looked_up = kind % 2 == 1});
      }
    }
  }
  const std::size_t before = out.size();
  std::uint64_t freed = 0;
  bool kept_may_go = false;
  while (freed < request.bytes) {
    Cursor* oldest = nullptr;
    for (Cursor& cursor : cursors_) {
      if (cursor.next != kNil &&
          (oldest == nullptr || NodeAt(cursor.next).stamp < NodeAt(oldest->next).stamp)) {
        oldest = &cursor;
      }
    }
    if (oldest == nullptr) {
      break;
    }
    const Slot slot = SlotOf(oldest->next);
    Node& first = nodes_.At(slot);
    const NodeId next = NodeAt(oldest->next).newer;
    if (first.picked == 0 && !guard.MayGo(slot)) {
      // Nobody newer in a list of looked-up objects may go before this one, unless it is bound by
      // something else than its lease, as few are.
      oldest->next = oldest->looked_up && ++oldest->bound == kMostBound ? kNil : next;
      continue;
    }
    oldest->next = next;
    kept_may_go = kept_may_go || slot == request.keep;
    if (first.picked == 0 && slot != request.keep) {
      first.picked = 1;
      out.push_back(slot);
      freed += BytesOn(slot, *request.segments);
    }
  }
  for (const Slot slot : out | std::views::drop(before)) {
    nodes_.At(slot).picked = 0;
  }
  if (out.size() == before && kept_may_go) {
    out.push_back(request.keep);
  }
}

}  // namespace mooncake::store
