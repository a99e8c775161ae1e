// How slices end, and what a batch does about those that fail or do not end.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/log.h"
#include "mooncake-transfer-engine/src/engine/batch.h"

namespace mooncake::transfer {

namespace {

// How long nothing moves before the transport is asked whether the peer's host is there at all.
constexpr Duration kAskHostAfter = std::chrono::seconds(1);

// Whether another attempt could end otherwise. What the peer refuses may be cured by a fresh look
// at its descriptor, which is the caller's to count.
bool WorthRetrying(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotSupported:
    case ErrorCode::kCancelled:
    case ErrorCode::kInternal:
      return false;
    default:
      return true;
  }
}

bool Refused(ErrorCode code) {
  return code == ErrorCode::kRejected || code == ErrorCode::kAddressNotRegistered ||
         code == ErrorCode::kPermissionDenied;
}

// Batches that found this path full. They are pooled objects that never die before the engine, so
// one that was recycled meanwhile is at worst told for nothing.
void TellWaiting(Path& path) {
  if (!path.anyone_waiting.load(std::memory_order_relaxed)) {
    return;
  }
  std::vector<Batch*> waiting;
  {
    const MutexLock lock(path.waiting_mutex);
    waiting.swap(path.waiting);
    path.anyone_waiting.store(false);
  }
  for (Batch* batch : waiting) {
    batch->Nudge();
  }
}

}  // namespace

void Batch::MaybeFinish(std::uint32_t index) {
  Task& task = tasks_[index];
  if (!task.cut || task.slices != 0) {
    return;
  }
  if (task.lost) {
    const ErrorCode code = reasons_.Code(task.reasons);
    task.state = code == ErrorCode::kTimeout     ? TransferState::kTimeout
                 : code == ErrorCode::kCancelled ? TransferState::kCanceled
                                                 : TransferState::kFailed;
    first_bad_ = bad_tasks_ == 0 ? index : std::min(first_bad_, index);
    ++bad_tasks_;
  } else {
    task.state = TransferState::kCompleted;
  }
  if (--open_tasks_ == 0) {
    Settle();
  }
}

void Batch::LoseSlice(EngineSlice* slice, std::uint32_t chain) {
  const std::uint32_t index = slice->task;
  Task& task = tasks_[index];
  if (!task.lost) {
    task.lost = true;
    task.reasons = chain;
  }
  if (!task.cut) {
    task.cut = true;  // The rest is not even tried.
    if (index == cursor_task_) {
      ++cursor_task_;
      cursor_offset_ = 0;
    }
  }
  --task.slices;
  FreeSlice(slice);
  MaybeFinish(index);
}

void Batch::LoseUnposted(std::uint32_t chain) {
  while (!delayed_.empty()) {
    LoseSlice(static_cast<EngineSlice*>(delayed_.PopFront()), chain);
  }
  for (std::size_t i = 0; i < target_count_; ++i) {
    while (!targets_[i]->ready.empty()) {
      --ready_;
      LoseSlice(static_cast<EngineSlice*>(targets_[i]->ready.PopFront()), chain);
    }
  }
  while (cursor_task_ < tasks_.size()) {
    const auto index = static_cast<std::uint32_t>(cursor_task_++);
    Task& task = tasks_[index];
    cursor_offset_ = 0;
    if (!task.cut) {
      task.cut = true;
      task.lost = true;
      task.reasons = task.reasons != 0 ? task.reasons : chain;
      MaybeFinish(index);
    }
  }
}

void Batch::OnDone(std::span<Slice* const> slices) noexcept {
  // Read before the last slice is accounted: afterwards the batch may be freed and the view gone.
  Path* path = nullptr;
  std::shared_ptr<PeerView> view;
  {
    const Guard guard(*this);
    std::size_t i = 0;
    while (i < slices.size()) {
      const std::uint16_t use_index = static_cast<EngineSlice*>(slices[i])->use;
      Use& use = uses_[use_index];
      const bool measures = use.view->Measures();
      const Instant now = measures ? context_.clock->Now() : Instant{};
      std::uint64_t bytes = 0;
      std::uint32_t count = 0;
      if (use.path->anyone_waiting.load(std::memory_order_relaxed)) [[unlikely]] {
        path = use.path;
        view = use.view;
      }
      use.path->ended_runs.fetch_add(1, std::memory_order_relaxed);
      for (; i < slices.size() && static_cast<EngineSlice*>(slices[i])->use == use_index; ++i) {
        auto* slice = static_cast<EngineSlice*>(slices[i]);
        const std::uint32_t index = slice->task;
        Task& task = tasks_[index];
        bytes += slice->length_bytes;
        ++count;
        if (measures) {
          use.view->OnDone(*use.path, slice->length_bytes, slice->posted, now);
        }
        task.done_bytes += slice->length_bytes;
        ++targets_[task.target]->done;
        --task.slices;
        FreeSlice(slice);
        MaybeFinish(index);
      }
      use.outstanding -= count;
      use.path->inflight_bytes.fetch_sub(bytes, std::memory_order_relaxed);
      done_bytes_ += bytes;
    }
    ++ends_;
    if (HasWork()) {
      Pump();
    }
  }
  if (path != nullptr) {
    TellWaiting(*path);
  }
}

void Batch::OnFailed(std::span<Slice* const> slices, const Error& why) noexcept {
  const Instant now = context_.clock->Now();
  Path* path = nullptr;
  std::shared_ptr<PeerView> view;
  {
    const Guard guard(*this);
    for (std::size_t i = 0; i < slices.size();) {
      const std::uint16_t use_index = static_cast<EngineSlice*>(slices[i])->use;
      path = uses_[use_index].path;
      view = uses_[use_index].view;
      path->ended_runs.fetch_add(1, std::memory_order_relaxed);
      // A cancelled or aborted slice says nothing about the path.
      const bool blame = why.code != ErrorCode::kCancelled && cancel_chain_ == 0;
      const Instant again = blame ? view->OnFailed(*path, now) : now;
      if (const auto times = blame && again > now ? path->pauses.Admit(now) : 0) {
        MC_LOG_WARNING("path {} to segment {}: paused for {} ms: {} ({} times)", path->traits.name,
                       view->descriptor().name, (again - now).count() / 1'000'000, why.message,
                       times);
      }
      const bool alternative = view->HasAlternative(*path, now);
      if (blame && !alternative) {
        view->suspect.store(true, std::memory_order_release);
      }
      for (; i < slices.size() && static_cast<EngineSlice*>(slices[i])->use == use_index; ++i) {
        auto* slice = static_cast<EngineSlice*>(slices[i]);
        --uses_[use_index].outstanding;
        path->inflight_bytes.fetch_sub(slice->length_bytes, std::memory_order_relaxed);
        slice->failed_on |= 1U << path->index;
        slice->retry = alternative ? now : std::max(now, again);
        Delay(*slice, *view, why);
      }
    }
    ++ends_;
    if (sleepers_ != 0) {
      changed_.NotifyAll();  // Who waits has to look after the delayed slices.
    }
    if (!delayed_.empty()) {
      RetryDue(now, /*may_fetch=*/false);
    }
    if (HasWork()) {
      Pump();
    }
  }
  if (context_.nudge) {
    context_.nudge();
  }
  TellWaiting(*path);
}

void Batch::Delay(EngineSlice& slice, const PeerView& view, const Error& why) {
  const std::uint16_t index = tasks_[slice.task].target;
  Target& target = *targets_[index];
  if (slice.attempts == 0) {
    slice.done_before = target.done;
  }
  slice.reasons = reasons_.Add(slice.reasons, uses_[slice.use].path->traits.name, why);
  ++slice.attempts;
  if (cancel_chain_ != 0) {
    LoseSlice(&slice, cancel_chain_);
    return;
  }
  const std::uint32_t all = (1U << view.paths().size()) - 1;
  const std::uint32_t usable = slice.registered ? all : all & ~view.registered_only();
  // A peer that stood still for our whole limit gets no second one.
  const bool aborted = std::ranges::find(aborting_, uses_[slice.use].path) != aborting_.end();
  const bool stalled = aborted && (usable & ~slice.failed_on) == 0;
  const bool spent = slice.attempts >= context_.attempt_budget;
  const bool hopeless =
      !WorthRetrying(why.code) || (Refused(why.code) && std::exchange(slice.refused, true));
  if (!stalled && !spent && !hopeless && target.given_up == 0 && !tasks_[slice.task].lost) {
    delayed_.PushBack(&slice);
    return;
  }
  // Says something of the others if it had time to see one move, and no path that it could not use.
  const bool nobody_got_through = !hopeless && (stalled || (spent && slice.attempts > 1)) &&
                                  usable == all && slice.done_before == target.done;
  const std::uint32_t chain = slice.reasons;
  LoseSlice(&slice, chain);
  if (nobody_got_through && target.given_up == 0) {
    GiveUp(index, chain);
  }
}

void Batch::GiveUp(std::uint16_t index, std::uint32_t chain) {
  Target& target = *targets_[index];
  target.given_up = chain;
  const std::size_t open_before = open_tasks_;
  LoseUnpostedOf(index, chain);
  if (const auto times = target.segment->failures().Admit(context_.clock->Now())) {
    MC_LOG_WARNING(
        "segment {}: {} transfers of a batch fail at once, for none gets through: {} ({} times)",
        target.segment->name(), open_before - open_tasks_, reasons_.Text(chain), times);
  }
}

void Batch::LoseUnpostedOf(std::uint16_t index, std::uint32_t chain) {
  Target& target = *targets_[index];
  SliceList waiting = std::exchange(delayed_, {});
  while (!waiting.empty()) {
    auto* slice = static_cast<EngineSlice*>(waiting.PopFront());
    if (tasks_[slice->task].target == index) {
      LoseSlice(slice, chain);
    } else {
      delayed_.PushBack(slice);
    }
  }
  while (!target.ready.empty()) {
    --ready_;
    LoseSlice(static_cast<EngineSlice*>(target.ready.PopFront()), chain);
  }
  for (std::size_t i = cursor_task_; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    if (task.target != index || task.cut) {
      continue;
    }
    task.cut = true;
    if (!task.lost) {
      task.lost = true;
      task.reasons = chain;
    }
    if (i == cursor_task_) {
      ++cursor_task_;
      cursor_offset_ = 0;
    }
    MaybeFinish(static_cast<std::uint32_t>(i));
  }
}

void Batch::AdoptView(Target& target) {
  auto current = context_.segments->Peek(*target.segment);
  if (current == nullptr || current == target.view) {
    return;
  }
  target.view = std::move(current);
  target.moved = context_.remote_check != RemoteCheck::kNever &&
                 (target.view->descriptor().extension.has_value() ||
                  context_.remote_check == RemoteCheck::kAlways);
  SliceList ready = std::exchange(target.ready, {});
  while (!ready.empty()) {
    auto* slice = static_cast<EngineSlice*>(ready.PopFront());
    slice->failed_on = 0;
    if (target.moved && !StillOffered(target, *slice)) {
      --ready_;
      continue;
    }
    target.ready.PushBack(slice);
  }
}

void Batch::RetryDue(Instant now, bool may_fetch) {
  // A view is only asked for again when slices wait for the answer and no other path has them.
  for (std::size_t i = 0; may_fetch && i < target_count_; ++i) {
    const std::shared_ptr<PeerView> view = targets_[i]->view;
    if (view->suspect.load(std::memory_order_acquire)) {
      Segment& segment = *targets_[i]->segment;
      mutex_.unlock();
      context_.check(segment, view, now);
      mutex_.lock();
    }
  }
  SliceList waiting = std::exchange(delayed_, {});
  while (!waiting.empty()) {
    auto* slice = static_cast<EngineSlice*>(waiting.PopFront());
    Task& task = tasks_[slice->task];
    Target& target = *targets_[task.target];
    if (task.lost) {
      LoseSlice(slice, task.reasons);
      continue;
    }
    if (now < slice->retry || target.view->suspect.load(std::memory_order_acquire)) {
      delayed_.PushBack(slice);
      continue;
    }
    AdoptView(target);
    if (uses_[slice->use].view != target.view) {
      slice->failed_on = 0;
      if (target.moved && !StillOffered(target, *slice)) {
        continue;
      }
    }
    target.ready.PushBack(slice);
    ++ready_;
  }
}

void Batch::AbortStalled(Instant now) {
  struct Still {
    std::shared_ptr<PeerView> view;
    Path* path;
    Duration time;
  };
  // Chosen before the first Abort: what that sends to another path must not be aborted there.
  std::vector<Still> stalled;
  std::vector<Still> suspicious;
  for (Use& use : uses_) {
    // Slices of others may move on a path while ours wait their turn, or for room.
    const bool waits = use.outstanding != 0 ||
                       (HasWork() && use.path->inflight_bytes.load(std::memory_order_relaxed) != 0);
    const std::uint64_t progress = use.path->Progress();
    const bool moved = progress != std::exchange(use.seen_progress, progress);
    if (!waits || moved || use.still_since == Instant{}) {
      use.still_since = now;
      continue;
    }
    const Duration time = now - use.still_since;
    if (time >= context_.stall_limit) {
      use.still_since = now;
      stalled.push_back({use.view, use.path, time});
    } else if (time >= kAskHostAfter) {
      suspicious.push_back({use.view, use.path, time});
    }
  }
  mutex_.unlock();
  std::erase_if(suspicious, [](const Still& one) { return !one.path->endpoint->CutOff(); });
  mutex_.lock();
  const auto abort = [this](const Still& one, std::string_view reason) MC_REQUIRES(mutex_) {
    const Error why{.code = ErrorCode::kTimeout,
                    .message = fmt::format("no byte moved to or from segment {} for {} ms; {}",
                                           one.view->descriptor().name,
                                           one.time / std::chrono::milliseconds(1), reason)};
    aborting_.push_back(one.path);
    mutex_.unlock();
    one.path->endpoint->Abort(why);
    mutex_.lock();
    aborting_.erase(std::ranges::find(aborting_, one.path));
  };
  for (const Still& one : stalled) {
    abort(one, "the peer is stopped or unreachable");
  }
  for (const Still& one : suspicious) {
    abort(one, "its host does not answer: it is down, or the network between is broken");
  }
}

void Batch::Housekeep(Instant now, bool may_fetch) {
  if (open_tasks_ == 0) {
    return;
  }
  AbortStalled(now);
  if (!delayed_.empty()) {
    RetryDue(now, may_fetch);
  }
  if (HasWork()) {
    Pump();
  }
}

void Batch::OnChecked() {
  const Guard guard(*this);
  if (delayed_.empty()) {
    return;
  }
  ++ends_;
  if (sleepers_ != 0) {
    changed_.NotifyAll();  // Who waits has it all to do.
  } else {
    Housekeep(context_.clock->Now(), /*may_fetch=*/true);
  }
}

bool Batch::LookAfter() {
  const Guard guard(*this);
  Housekeep(context_.clock->Now(), /*may_fetch=*/true);
  return open_tasks_ != 0;
}

}  // namespace mooncake::transfer
