#include "mooncake-transfer-engine/src/engine/segment_table.h"

#include <fmt/format.h>

#include <utility>

namespace mooncake::transfer {

SegmentTable::SegmentTable(std::string own_name, std::shared_ptr<SegmentDirectory> directory,
                           std::span<const std::unique_ptr<Transport>> transports)
    : directory_(std::move(directory)), transports_(transports) {
  const MutexLock lock(mutex_);
  ids_.emplace(own_name, kLocalSegment);
  segments_.Append(kLocalSegment, std::move(own_name));
}

Result<SegmentId> SegmentTable::Open(std::string_view name) {
  if (name.starts_with('/')) {
    name.remove_prefix(1);
  }
  if (name.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "open a segment without a name; give the peer's name");
  }
  {
    const MutexLock lock(mutex_);
    if (const auto it = ids_.find(name); it != ids_.end()) {
      return it->second;
    }
  }
  // An unknown peer gets no number, so ask before giving one.
  Segment probe(0, std::string(name));
  MC_TRY_ASSIGN(auto descriptor, directory_->Fetch(probe.name()));
  MC_TRY_ASSIGN(auto view, PeerView::Make(std::move(descriptor), transports_));
  const MutexLock lock(mutex_);
  const auto [it, added] = ids_.try_emplace(probe.name(), segments_.size());
  if (!added) {
    retired_.push_back(std::move(view));
    return it->second;
  }
  Segment* segment = segments_.Append(it->second, probe.name());
  if (segment == nullptr) {
    ids_.erase(it);
    return Fail(ErrorCode::kExhausted, fmt::format("open segment {}: {} segments are open already",
                                                   name, segments_.size()));
  }
  const MutexLock segment_lock(segment->mutex_);
  segment->view_ = std::move(view);
  return segment->id();
}

std::shared_ptr<PeerView> SegmentTable::Peek(const Segment& segment) const {
  const MutexLock lock(segment.mutex_);
  return segment.view_;
}

Result<std::shared_ptr<PeerView>> SegmentTable::View(Segment& segment) {
  if (auto view = Peek(segment)) {
    return view;
  }
  MC_TRY(Fetch(segment));
  if (auto view = Peek(segment)) {
    return view;
  }
  return Fail(ErrorCode::kUnavailable,
              fmt::format("use segment {}: it was closed meanwhile; try again", segment.name()));
}

Result<std::shared_ptr<const SegmentDescriptor>> SegmentTable::Ask(const Segment& segment) {
  if (segment.id() != kLocalSegment) {
    return directory_->Fetch(segment.name());
  }
  const MutexLock lock(mutex_);
  if (own_ == nullptr) {
    return Fail(ErrorCode::kUnavailable, "use the local segment: the engine is not started");
  }
  return own_;
}

Result<void> SegmentTable::Fetch(Segment& segment) {
  {
    const MutexLock lock(segment.mutex_);
    const std::uint64_t next = segment.asked_ + 1;
    while (segment.fetching_) {
      segment.fetched_.Wait(segment.mutex_);
      // What was asked before may miss what the peer has offered since; a peer that does not answer
      // is not asked once more.
      if (segment.answered_ >= next || !segment.last_fetch_) {
        return segment.last_fetch_;
      }
    }
    segment.fetching_ = true;
    ++segment.asked_;
  }
  auto descriptor = Ask(segment);
  std::shared_ptr<PeerView> current = Peek(segment);
  Result<void> outcome;
  std::shared_ptr<PeerView> fresh;
  if (!descriptor) {
    outcome = std::unexpected(descriptor.error());
  } else if (current == nullptr || !current->SameAs(**descriptor)) {
    if (auto made = PeerView::Make(std::move(descriptor).value(), transports_)) {
      fresh = std::move(made).value();
    } else {
      outcome = std::unexpected(made.error());
    }
  }
  std::shared_ptr<PeerView> old;
  {
    const MutexLock lock(segment.mutex_);
    if (fresh != nullptr) {
      old = std::exchange(segment.view_, std::move(fresh));
    }
    segment.fetching_ = false;
    segment.answered_ = segment.asked_;
    segment.last_fetch_ = outcome;
    segment.fetched_.NotifyAll();
  }
  current.reset();
  Retire(std::move(old));
  Purge();
  if (segment.id() == kLocalSegment) {
    // Registrations may have gone on meanwhile; a view of the older state must not stay.
    const auto view = Peek(segment);
    const auto own = Ask(segment);
    if (view != nullptr && own && view->SharedDescriptor() != *own && !view->SameAs(**own)) {
      return Fetch(segment);
    }
  }
  return outcome;
}

Result<void> SegmentTable::Refresh(Segment& segment) { return Fetch(segment); }

bool SegmentTable::BeginCheck(Segment& segment, PeerView& suspect, Instant now) {
  bool due = false;
  {
    const MutexLock lock(segment.mutex_);
    due = segment.view_.get() == &suspect &&
          (segment.last_check_ == Instant{} || now - segment.last_check_ >= kCheckInterval);
    if (due) {
      segment.last_check_ = now;
    }
  }
  if (!due) {
    suspect.suspect.store(false, std::memory_order_release);
  }
  return due;
}

void SegmentTable::Check(Segment& segment, PeerView& suspect) {
  // An error keeps the old view, which is then tried as it is; the attempt's own error is told.
  static_cast<void>(Fetch(segment));
  suspect.suspect.store(false, std::memory_order_release);
}

void SegmentTable::Drop(Segment& segment) {
  std::shared_ptr<PeerView> old;
  {
    const MutexLock lock(segment.mutex_);
    old = std::move(segment.view_);
    segment.view_ = nullptr;
  }
  Retire(std::move(old));
}

void SegmentTable::SetOwn(std::shared_ptr<const SegmentDescriptor> own) {
  {
    const MutexLock lock(mutex_);
    own_ = std::move(own);
  }
  Drop(*segments_.At(kLocalSegment));
}

void SegmentTable::Retire(std::shared_ptr<PeerView> view) {
  if (view != nullptr) {
    const MutexLock lock(mutex_);
    retired_.push_back(std::move(view));
  }
}

void SegmentTable::Purge() {
  std::vector<std::shared_ptr<PeerView>> gone;
  {
    const MutexLock lock(mutex_);
    std::erase_if(retired_, [&gone](std::shared_ptr<PeerView>& view) {
      // Nobody can take a new reference: the view is in no segment any more.
      if (view.use_count() != 1) {
        return false;
      }
      gone.push_back(std::move(view));
      return true;
    });
  }
  // Destroyed here, outside the lock: an endpoint's end calls sinks.
}

void SegmentTable::Clear() {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Drop(*segments_.At(i));
  }
  Purge();
}

}  // namespace mooncake::transfer
