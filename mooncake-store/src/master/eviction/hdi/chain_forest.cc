#include "mooncake-store/src/master/eviction/hdi/chain_forest.h"

#include <fmt/format.h>

#include <algorithm>

#include "mooncake-common/src/base/result.h"

namespace mooncake::store {

namespace {

constexpr std::uint32_t kMaxLives = 256;
// Steps up a chain before it is held for endless.
constexpr std::size_t kLongestWalk = 16384;

}  // namespace

ChainForest::Node* ChainForest::Find(Slot slot) {
  Node* node = slot == kNoSlot ? nullptr : nodes_.Find(slot);
  return node == nullptr || node->segment == kUnusedSegment ? nullptr : node;
}

template <typename Visit>
void ChainForest::ForEachPlace(Slot slot, Node& node, Visit visit) {
  visit(SegmentNumber{node.segment}, node.at);
  if (node.spread != 0) {
    for (FurtherPlace& place : further_.at(slot)) {
      visit(place.segment, place.at);
    }
  }
}

void ChainForest::List(Slot slot, Node& node) {
  MC_CHECK(MayBeListed(node));
  node.state = static_cast<std::uint32_t>(State::kListed);
  const std::size_t kind = KindOf(node);
  ForEachPlace(slot, node, [&](SegmentNumber segment, std::uint32_t& at) {
    std::vector<Slot>& list = lists_[segment][kind];
    at = static_cast<std::uint32_t>(list.size());
    list.push_back(slot);
  });
}

void ChainForest::Unlist(Slot slot, Node& node) {
  const std::size_t kind = KindOf(node);
  ForEachPlace(slot, node, [&](SegmentNumber segment, std::uint32_t& at) {
    std::vector<Slot>& list = lists_[segment][kind];
    const Slot moved = list.back();
    list[at] = moved;
    list.pop_back();
    if (moved != slot) {
      Node& other = nodes_.At(moved);
      if (other.segment == segment) {
        other.at = at;
      } else {
        std::ranges::find(further_.at(moved), segment, &FurtherPlace::segment)->at = at;
      }
    }
    if (list.size() * 4 < list.capacity() && list.capacity() > 1024) {
      list.shrink_to_fit();
    }
  });
  node.at = 0;
  node.state = static_cast<std::uint32_t>(State::kUnlisted);
}

void ChainForest::Settle(Slot slot, Node& node) {
  if (node.listing() == State::kListed) {
    Unlist(slot, node);
  } else if (node.listing() == State::kResting) {
    node.state = static_cast<std::uint32_t>(State::kUnlisted);
    --resting_count_;
  }
}

void ChainForest::Hang(Slot child, Node& node, Slot parent) {
  node.parent = kNoSlot;
  Node* above = parent == child ? nullptr : Find(parent);
  if (above == nullptr) {
    return;
  }
  std::uint8_t life = 0;
  if (!lives_.empty()) {
    if (const auto found = lives_.find(parent); found != lives_.end()) {
      if (found->second.orphans.size() == kMaxLives) {
        return;  // No number is left for this life.
      }
      life = found->second.current;
    }
  }
  Settle(parent, *above);
  ++above->at;
  NoteInner(parent, *above);
  node.parent = parent;
  node.parent_life = life;
}

void ChainForest::NoteInner(Slot slot, Node& node) {
  ForEachPlace(slot, node,
               [&](SegmentNumber segment, std::uint32_t&) { ++inner_changes_[segment]; });
}

std::uint64_t ChainForest::InnerChanges(const SegmentMask& segments) const {
  std::uint64_t changes = 0;
  for (std::size_t segment = 0; segment < inner_changes_.size(); ++segment) {
    changes += segments.Has(static_cast<SegmentNumber>(segment)) ? inner_changes_[segment] : 0;
  }
  return changes;
}

bool ChainForest::HasParent(const Node& node) const {
  if (node.parent == kNoSlot) {
    return false;
  }
  if (lives_.empty()) {
    return true;
  }
  const auto found = lives_.find(node.parent);
  return found == lives_.end() || std::ranges::find(found->second.orphans, node.parent_life,
                                                    [](const auto& each) { return each.first; }) ==
                                      found->second.orphans.end();
}

Slot ChainForest::LetGo(Node& node) {
  const Slot parent = node.parent;
  if (parent == kNoSlot) {
    return kNoSlot;
  }
  if (!HasParent(node)) {
    const auto found = lives_.find(parent);
    auto& orphans = found->second.orphans;
    const auto life =
        std::ranges::find(orphans, node.parent_life, [](const auto& each) { return each.first; });
    if (--life->second == 0) {
      orphans.erase(life);
    }
    // A life that has a number must keep it: its children name it.
    if (orphans.empty() && (found->second.current == 0 || Find(parent) == nullptr)) {
      lives_.erase(found);
    }
    node.parent = kNoSlot;
    return kNoSlot;
  }
  node.parent = kNoSlot;
  Node& above = nodes_.At(parent);
  --above.at;
  if (!MayBeListed(above)) {
    return kNoSlot;
  }
  List(parent, above);
  return parent;
}

ChainForest::Node& ChainForest::Add(const PutEvent& event) {
  for (const Placement& placement : event.placements) {
    if (placement.segment >= lists_.size()) {
      lists_.resize(placement.segment + 1);
      inner_changes_.resize(placement.segment + 1);
    }
  }
  Node& node = nodes_.Add(event.slot);
  ++size_;
  node.segment = event.placements[0].segment;
  node.units = event.placements[0].units;
  node.pin = static_cast<std::uint32_t>(event.pin);
  if (event.placements.size() > 1) {
    node.spread = 1;
    std::vector<FurtherPlace>& further = further_[event.slot];
    for (const Placement& placement : event.placements.subspan(1)) {
      further.push_back({.segment = placement.segment, .units = placement.units});
    }
  }
  if (!lives_.empty()) {
    if (const auto found = lives_.find(event.slot); found != lives_.end()) {
      Lives& lives = found->second;
      for (std::uint32_t life = 0; life < kMaxLives; ++life) {
        lives.current = static_cast<std::uint8_t>(life);
        if (std::ranges::find(lives.orphans, lives.current,
                              [](const auto& each) { return each.first; }) == lives.orphans.end()) {
          break;
        }
      }
    }
  }
  Hang(event.slot, node, event.parent);
  return node;
}

void ChainForest::SetReady(Slot slot) {
  Node& node = nodes_.At(slot);
  if (node.ready == 0) {
    node.ready = 1;
    NoteInner(slot, node);
    if (MayBeListed(node)) {
      List(slot, node);
    }
  }
}

void ChainForest::SetPin(Slot slot, PinClass pin) {
  Node& node = nodes_.At(slot);
  if (node.pin == static_cast<std::uint32_t>(pin)) {
    return;
  }
  if (node.listing() == State::kListed) {
    Unlist(slot, node);
  }
  node.pin = static_cast<std::uint32_t>(pin);
  NoteInner(slot, node);
  if (pin == PinClass::kHard) {
    Settle(slot, node);
  } else if (MayBeListed(node)) {
    List(slot, node);
  }
}

Slot ChainForest::Remove(Slot slot) {
  Node& node = nodes_.At(slot);
  Settle(slot, node);
  if (const std::uint32_t children = node.at; children > 0) {
    Lives& lives = lives_[slot];
    lives.orphans.emplace_back(lives.current, children);
  } else if (!lives_.empty()) {
    if (const auto found = lives_.find(slot);
        found != lives_.end() && found->second.orphans.empty()) {
      lives_.erase(found);
    }
  }
  const Slot parent = LetGo(node);
  if (node.spread != 0) {
    further_.erase(slot);
  }
  nodes_.Remove(slot);
  --size_;
  return parent;
}

void ChainForest::Adopt(Slot orphan, Slot parent, Slot& root) {
  if (root == kNoSlot) {
    Slot above = parent;
    for (std::size_t step = 0; HasParent(nodes_.At(above)); ++step) {
      if (step == kLongestWalk) {
        return;
      }
      above = nodes_.At(above).parent;
    }
    root = above;
  }
  if (root != orphan) {
    Node& node = nodes_.At(orphan);
    (void)LetGo(node);
    Hang(orphan, node, parent);
  }
}

std::uint64_t ChainForest::BytesOn(Slot slot, const SegmentMask& segments) {
  const Node& node = nodes_.At(slot);
  std::uint64_t units = segments.Has(node.segment) ? node.units : 0;
  if (node.spread != 0) {
    for (const FurtherPlace& place : further_.at(slot)) {
      units += segments.Has(place.segment) ? place.units : 0;
    }
  }
  return units * 64;
}

void ChainForest::PushResting(Resting resting) {
  resting_.push_back(resting);
  std::push_heap(resting_.begin(), resting_.end());
}

void ChainForest::Rest(Slot slot, std::int64_t until_ns) {
  Node& node = nodes_.At(slot);
  Unlist(slot, node);
  node.state = static_cast<std::uint32_t>(State::kResting);
  ++resting_count_;
  PushResting({until_ns, slot});
  if (resting_.size() > 2 * resting_count_ + 1024) {
    // Most have stopped resting by other ways; one entry stays of each that does.
    std::ranges::sort(resting_, [](const Resting& a, const Resting& b) {
      return a.slot != b.slot ? a.slot < b.slot : a.until_ns < b.until_ns;
    });
    Slot previous = kNoSlot;
    std::erase_if(resting_, [&](const Resting& each) {
      const bool again = each.slot == previous;
      previous = each.slot;
      const Node* of = Find(each.slot);
      return again || of == nullptr || of->listing() != State::kResting;
    });
    std::make_heap(resting_.begin(), resting_.end());
  }
}

Slot ChainForest::Take(Slot slot) {
  Node& node = nodes_.At(slot);
  Unlist(slot, node);
  if (!HasParent(node)) {
    return kNoSlot;
  }
  Node& above = nodes_.At(node.parent);
  --above.at;
  if (!MayBeListed(above)) {
    return kNoSlot;
  }
  List(node.parent, above);
  return node.parent;
}

void ChainForest::Undo(Slot slot) {
  Node& node = nodes_.At(slot);
  if (HasParent(node)) {
    Node& above = nodes_.At(node.parent);
    Settle(node.parent, above);
    ++above.at;
  }
  List(slot, node);
}

std::string ChainForest::CheckInvariants() {
  std::unordered_map<Slot, std::uint32_t> children;
  std::size_t nodes = 0;
  std::size_t resting = 0;
  nodes_.ForEach([&](Slot /*slot*/, Node& node) {
    if (node.segment == kUnusedSegment) {
      return;
    }
    ++nodes;
    resting += static_cast<std::size_t>(node.listing() == State::kResting);
    if (HasParent(node)) {
      ++children[node.parent];
    }
  });
  std::string wrong;
  if (nodes != size_ || resting != resting_count_) {
    wrong = fmt::format("{} nodes counted as {}, {} resting as {}", nodes, size_, resting,
                        resting_count_);
  }
  std::size_t listed = 0;
  nodes_.ForEach([&](Slot slot, Node& node) {
    if (node.segment == kUnusedSegment) {
      return;
    }
    const std::uint32_t has = children.contains(slot) ? children.at(slot) : 0;
    const bool end =
        has == 0 && node.ready != 0 && node.pin != static_cast<std::uint32_t>(PinClass::kHard);
    if (end != (node.listing() != State::kUnlisted)) {
      wrong = fmt::format("slot {} with {} children is {}an end", slot, has, end ? "not " : "");
    }
    if (node.listing() == State::kUnlisted && node.at != has) {
      wrong = fmt::format("slot {} counts {} children of {}", slot, node.at, has);
    }
    if (node.listing() == State::kListed) {
      ForEachPlace(slot, node, [&](SegmentNumber segment, std::uint32_t& at) {
        ++listed;
        if (at >= lists_[segment][KindOf(node)].size() ||
            lists_[segment][KindOf(node)][at] != slot) {
          wrong = fmt::format("slot {} is not at its place on segment {}", slot, segment);
        }
      });
    }
  });
  for (const auto& kinds : lists_) {
    for (const std::vector<Slot>& list : kinds) {
      listed -= list.size();
    }
  }
  return listed != 0 ? "a list holds what is no end" : wrong;
}

}  // namespace mooncake::store
