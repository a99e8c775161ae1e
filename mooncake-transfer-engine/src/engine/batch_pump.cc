// How a batch's requests become slices on paths.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "mooncake-transfer-engine/src/engine/batch.h"
#include "mooncake-transfer-engine/src/engine/slice_plan.h"

namespace mooncake::transfer {

namespace {

constexpr std::size_t kSliceChunk = 64;  // Slices are allocated so many at a time.
// Slices handed to a transport at once: enough that a system call carries many.
constexpr std::size_t kRun = 256;

}  // namespace

void Batch::SliceList::PushBack(Slice* slice) {
  slice->next = nullptr;
  if (tail == nullptr) {
    head = slice;
  } else {
    tail->next = slice;
  }
  tail = slice;
}

void Batch::SliceList::PushFront(Slice* slice) {
  slice->next = head;
  head = slice;
  if (tail == nullptr) {
    tail = slice;
  }
}

Slice* Batch::SliceList::PopFront() {
  Slice* slice = head;
  head = slice->next;
  if (head == nullptr) {
    tail = nullptr;
  }
  return slice;
}

Batch::EngineSlice* Batch::NewSlice() {
  if (free_slices_.empty()) {
    slice_chunks_.push_back(std::make_unique<EngineSlice[]>(kSliceChunk));
    for (std::size_t i = 0; i < kSliceChunk; ++i) {
      slice_chunks_.back()[i].sink = this;
      free_slices_.PushBack(&slice_chunks_.back()[i]);
    }
  }
  ++live_slices_;
  return static_cast<EngineSlice*>(free_slices_.PopFront());
}

void Batch::FreeSlice(EngineSlice* slice) {
  --live_slices_;
  free_slices_.PushFront(slice);
}

void Batch::Cut() {
  while (cursor_task_ < tasks_.size() && live_slices_ < context_.window_slices) {
    Task& task = tasks_[cursor_task_];
    if (task.cut) {
      ++cursor_task_;
      continue;
    }
    Target& target = *targets_[task.target];
    const std::uint64_t length =
        std::min(task.length_bytes - cursor_offset_,
                 SliceLength(task.length_bytes, {.max_slice_bytes = context_.max_slice_bytes,
                                                 .usable_paths = target.view->best_rank_paths()}));
    EngineSlice* slice = NewSlice();
    slice->local = task.local + cursor_offset_;
    slice->remote_address = task.remote + cursor_offset_;
    slice->length_bytes = length;
    slice->opcode = task.opcode;
    slice->task = static_cast<std::uint32_t>(cursor_task_);
    slice->reasons = 0;
    slice->failed_on = 0;
    slice->attempts = 0;
    slice->registered = task.registered;
    slice->refused = false;
    ++task.slices;
    task.state = TransferState::kPending;
    cursor_offset_ += length;
    if (cursor_offset_ == task.length_bytes) {
      task.cut = true;
      ++cursor_task_;
      cursor_offset_ = 0;
    }
    if (target.moved && !StillOffered(target, *slice)) [[unlikely]] {
      continue;
    }
    target.ready.PushBack(slice);
    ++ready_;
  }
}

bool Batch::StillOffered(const Target& target, EngineSlice& slice) {
  if (target.view->FindRange(slice.remote_address, slice.length_bytes)) {
    return true;
  }
  const Error why{
      .code = ErrorCode::kAddressNotRegistered,
      .message = fmt::format("segment {} has restarted or changed and no longer offers "
                             "{} bytes at {:#x}; ask the peer for its new addresses",
                             target.segment->name(), slice.length_bytes, slice.remote_address)};
  LoseSlice(&slice, reasons_.Add(slice.reasons, "", why));
  return false;
}

std::uint16_t Batch::UseOf(const std::shared_ptr<PeerView>& view, Path& path) {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].path == &path) {
      return static_cast<std::uint16_t>(i);
    }
  }
  uses_.push_back(Use{.view = view, .path = &path});
  return static_cast<std::uint16_t>(uses_.size() - 1);
}

std::size_t Batch::GatherRun(Target& target, std::span<Slice*> run, Path*& path) {
  PeerView& view = *target.view;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  path = nullptr;
  while (count < run.size() && !target.ready.empty()) {
    auto* slice = static_cast<EngineSlice*>(target.ready.head);
    Path* choice =
        view.Choose({.length_bytes = slice->length_bytes,
                     .excluded = target.full | (slice->registered ? 0 : view.registered_only()),
                     .avoided = slice->failed_on,
                     .first_attempt = slice->attempts == 0},
                    *context_.clock);
    if (choice == nullptr || (path != nullptr && choice != path)) {
      break;
    }
    path = choice;
    target.ready.PopFront();
    run[count++] = slice;
    if (view.Measures()) {
      // The next choice must see this slice.
      path->inflight_bytes.fetch_add(slice->length_bytes, std::memory_order_relaxed);
      slice->posted = context_.clock->Now();
    } else {
      bytes += slice->length_bytes;
      slice->posted = Instant{};
    }
  }
  if (bytes != 0) {
    path->inflight_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  ready_ -= static_cast<std::uint32_t>(count);
  return count;
}

bool Batch::PostReady(std::uint16_t index) {
  Target& target = *targets_[index];
  bool any = false;
  std::array<Slice*, kRun> run;
  while (!target.ready.empty()) {
    Path* path = nullptr;
    const std::size_t count = GatherRun(target, run, path);
    if (count == 0) {
      break;  // Every path is full, paused or excluded: an end or Housekeep comes back here.
    }
    const std::shared_ptr<PeerView> view = target.view;  // Keeps the endpoint while unlocked.
    const std::uint16_t use = UseOf(view, *path);
    if (uses_[use].outstanding == 0) {
      release_due_ = release_due_ || waiters_ == 0;
      uses_[use].still_since = Instant{};
    }
    uses_[use].outstanding += static_cast<std::uint32_t>(count);
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<EngineSlice*>(run[i])->use = use;
    }
    mutex_.unlock();
    const std::size_t taken = path->endpoint->Post(std::span(run).first(count));
    mutex_.lock();
    any = any || taken != 0;
    if (taken == count) {
      continue;
    }
    std::uint64_t bytes = 0;
    for (std::size_t i = count; i-- > taken;) {
      bytes += run[i]->length_bytes;
      target.ready.PushFront(run[i]);
    }
    path->inflight_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    ready_ += static_cast<std::uint32_t>(count - taken);
    uses_[use].outstanding -= static_cast<std::uint32_t>(count - taken);
    target.full |= 1U << path->index;
    if (uses_[use].outstanding == 0) {
      WaitForRoom(*path);
    }
    if (cancel_chain_ != 0) {
      LoseUnposted(cancel_chain_);
    } else if (target.given_up != 0) {
      LoseUnpostedOf(index, target.given_up);
    }
  }
  return any;
}

void Batch::WaitForRoom(Path& path) {
  const MutexLock lock(path.waiting_mutex);
  if (std::ranges::find(path.waiting, this) == path.waiting.end()) {
    path.waiting.push_back(this);
    path.anyone_waiting.store(true);
    // Room may have come between the refusal and this entry, with nobody to tell us.
    again_ = true;
  }
}

void Batch::Pump() {
  if (pumping_) {
    again_ = true;
    return;
  }
  pumping_ = true;
  do {
    again_ = false;
    for (std::size_t i = 0; i < target_count_; ++i) {
      targets_[i]->full = 0;
    }
    bool posted = true;
    while (posted && HasWork()) {
      Cut();
      posted = false;
      for (std::size_t i = 0; i < target_count_; ++i) {
        posted = PostReady(static_cast<std::uint16_t>(i)) || posted;
      }
    }
  } while (again_);
  pumping_ = false;
  if (std::exchange(release_due_, false) && waiters_ == 0) {
    ReleaseAll();
  }
}

void Batch::Nudge() {
  const Guard guard(*this);
  if (open_tasks_ != 0) {
    Pump();
  }
}

bool Batch::DriveOnce() {
  bool moved = false;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].outstanding == 0 && !HasWork()) {
      continue;  // With work, others may fill the path: drive theirs to make room.
    }
    const std::shared_ptr<PeerView> view = uses_[i].view;
    Endpoint& endpoint = *uses_[i].path->endpoint;
    mutex_.unlock();
    moved = endpoint.Drive() || moved;
    mutex_.lock();
  }
  return moved;
}

void Batch::ReleaseAll() {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].outstanding == 0) {
      continue;
    }
    const std::shared_ptr<PeerView> view = uses_[i].view;
    Endpoint& endpoint = *uses_[i].path->endpoint;
    mutex_.unlock();
    endpoint.Release();
    mutex_.lock();
  }
}

}  // namespace mooncake::transfer
