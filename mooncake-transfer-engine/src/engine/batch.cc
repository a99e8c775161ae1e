// What callers ask of a batch: appending, polling, waiting, cancelling. Moving slices is in
// batch_pump.cc, their ends and what follows in batch_end.cc.
#include "mooncake-transfer-engine/src/engine/batch.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "mooncake-common/src/concurrency/parking.h"

namespace mooncake::transfer {

namespace {

// What a pooled batch may keep of its tasks: enough that ordinary batches never allocate, while a
// pool of once-huge ones stays small.
constexpr std::size_t kKeptTasks = 1024;
// Polls between two looks at the clock while a caller's polling moves bytes.
constexpr std::uint32_t kBusyPolls = 64;
constexpr std::uint32_t kIdlePollsPerYield = 4;

}  // namespace

Batch::~Batch() {
  if (event_fd_ >= 0) {
    ::close(event_fd_);
  }
}

BatchId Batch::Begin(std::size_t capacity) {
  const MutexLock lock(mutex_);
  ++generation_;
  capacity_ = capacity;
  const BatchId id = (generation_ << 16U) | index_;
  id_.store(id, std::memory_order_release);
  return id;
}

Result<void> Batch::CheckId(BatchId id) const {
  if (id_.load(std::memory_order_relaxed) != id) [[unlikely]] {
    return Fail(ErrorCode::kNotFound,
                fmt::format("use batch {:#x}: it was freed or never allocated", id));
  }
  return {};
}

Result<void> Batch::CheckOpen(BatchId id) const {
  MC_TRY(CheckId(id));
  if (cancel_chain_ != 0) {
    return Fail(ErrorCode::kCancelled, fmt::format("submit to batch {:#x}: it was cancelled", id));
  }
  return {};
}

Batch::Guard::~Guard() {
  std::move_only_function<void()> callback;
  if (batch_.callback_ && batch_.open_tasks_ == 0 && !batch_.tasks_.empty()) [[unlikely]] {
    callback = std::exchange(batch_.callback_, nullptr);
    batch_.NoteAllTold();
  }
  batch_.mutex_.unlock();
  if (callback) {
    callback();
  }
}

Result<void> Batch::End(BatchId id) {
  const MutexLock lock(mutex_);
  MC_TRY(CheckId(id));
  if (open_tasks_ != 0) {
    return Fail(ErrorCode::kBusy, fmt::format("free batch {:#x}: {} tasks are not finished; poll "
                                              "until they are, or cancel",
                                              id, open_tasks_));
  }
  // Notifies go out when the end of the last task is told, so who frees earlier would lose them.
  if (untold_tasks_ != 0 && !told_of_bad_ && event_fd_ < 0) {
    return Fail(ErrorCode::kBusy, fmt::format("free batch {:#x}: {} tasks have ended and nobody "
                                              "asked how; poll each, or the batch",
                                              id, untold_tasks_));
  }
  id_.store(0, std::memory_order_release);
  if (tasks_.capacity() > kKeptTasks) {
    std::vector<Task>().swap(tasks_);
  }
  tasks_.clear();
  for (std::size_t i = 0; i < target_count_; ++i) {
    *targets_[i] = Target();
  }
  target_count_ = 0;
  uses_.clear();
  reasons_.Clear();
  notifies_.clear();
  bad_tasks_ = 0;
  untold_tasks_ = 0;
  all_told_ = 0;
  told_of_bad_ = false;
  done_bytes_ = 0;
  cursor_task_ = 0;
  cursor_offset_ = 0;
  cancel_chain_ = 0;
  callback_ = nullptr;
  if (event_fd_ >= 0) {
    ::close(std::exchange(event_fd_, -1));
  }
  return {};
}

Result<std::uint16_t> Batch::TargetOf(BatchId id, SegmentId segment_id) {
  for (std::size_t i = target_count_; i-- > 0;) {
    if (targets_[i]->segment->id() == segment_id) {
      return static_cast<std::uint16_t>(i);
    }
  }
  Segment* segment = context_.segments->Find(segment_id);
  if (segment == nullptr) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("submit to segment {}: no such segment; open it first", segment_id));
  }
  constexpr std::size_t kMaxTargets = 0xffff;
  if (target_count_ == kMaxTargets) {
    return Fail(ErrorCode::kExhausted, "submit to more than 65535 segments in one batch");
  }
  std::shared_ptr<PeerView> view = context_.segments->Peek(*segment);
  if (view == nullptr) {
    // Only after CloseSegment, a registration (for segment 0), or a failed first contact.
    mutex_.unlock();
    auto made = context_.segments->View(*segment);
    mutex_.lock();
    MC_TRY(CheckOpen(id));
    MC_TRY_ASSIGN(view, std::move(made));
    for (std::size_t i = 0; i < target_count_; ++i) {
      if (targets_[i]->segment == segment) {
        return static_cast<std::uint16_t>(i);  // Another thread was here meanwhile.
      }
    }
  }
  if (target_count_ == targets_.size()) {
    targets_.push_back(std::make_unique<Target>());
  }
  Target& target = *targets_[target_count_];
  target.segment = segment;
  target.view = std::move(view);
  return static_cast<std::uint16_t>(target_count_++);
}

Result<void> Batch::CheckRequest(BatchId id, const TransferRequest& request, std::uint16_t index,
                                 AddressRange& remote, AddressRange& local) {
  Target& target = *targets_[index];
  const auto checked_here = [this](const PeerView& view) {
    return context_.remote_check == RemoteCheck::kAlways ||
           (context_.remote_check == RemoteCheck::kAuto && view.descriptor().extension.has_value());
  };
  if (checked_here(*target.view)) {
    auto range = target.view->FindRange(request.remote_address, request.length_bytes);
    if (!range) {
      // Perhaps the peer registered it after we last looked.
      Segment& segment = *target.segment;
      mutex_.unlock();
      const auto refreshed = context_.segments->Refresh(segment);
      mutex_.lock();
      MC_TRY(CheckOpen(id));
      AdoptView(target);
      range = target.view->FindRange(request.remote_address, request.length_bytes);
      if (!range) {
        return Fail(
            ErrorCode::kAddressNotRegistered,
            fmt::format(
                "{} {} bytes at {:#x} of segment {}: not inside one buffer that it "
                "offers{}; check the address, or register it there first",
                request.opcode == Opcode::kRead ? "read" : "write", request.length_bytes,
                request.remote_address, segment.name(),
                refreshed ? "" : " (and it does not answer: " + refreshed.error().message + ")"));
      }
    }
    remote = *range;
  } else {
    remote = AddressRange{.begin = 0, .end = ~std::uint64_t{0}};
  }
  if (target.view->needs_registration()) {
    const auto address = reinterpret_cast<std::uint64_t>(request.local);
    if (const auto range = context_.regions->Find(address, request.length_bytes)) {
      local = *range;
    } else {
      local = AddressRange{};
      const std::uint32_t all = (1U << target.view->paths().size()) - 1;
      if (target.view->registered_only() == all) {
        return Fail(ErrorCode::kAddressNotRegistered,
                    fmt::format("transfer {} bytes of local memory at {:#x} with segment {}: it is "
                                "not registered; register it first",
                                request.length_bytes, address, target.segment->name()));
      }
    }
  } else {
    local = AddressRange{.begin = 0, .end = ~std::uint64_t{0}};
  }
  return {};
}

Result<void> Batch::CheckAll(BatchId id, std::span<const TransferRequest> requests) {
  MC_TRY(CheckOpen(id));
  SegmentId segment = 0;
  std::uint16_t target = 0;
  AddressRange remote;
  AddressRange local;
  bool known = false;
  for (const TransferRequest& request : requests) {
    if (!known || request.segment != segment) {
      MC_TRY_ASSIGN(target, TargetOf(id, request.segment));
      segment = request.segment;
      known = true;
      remote = AddressRange{};
    }
    if (request.length_bytes != 0 &&
        (!remote.Contains(request.remote_address, request.length_bytes) ||
         !local.Contains(reinterpret_cast<std::uint64_t>(request.local), request.length_bytes))) {
      MC_TRY(CheckRequest(id, request, target, remote, local));
    }
  }
  if (requests.size() > capacity_ - tasks_.size()) {
    return Fail(ErrorCode::kExhausted,
                fmt::format("submit {} requests to batch {:#x}: it holds {} of {} tasks; allocate "
                            "a larger one",
                            requests.size(), id, tasks_.size(), capacity_));
  }
  return {};
}

void Batch::AppendTasks(BatchId id, std::span<const TransferRequest> requests) {
  if (tasks_.capacity() < tasks_.size() + requests.size()) {
    tasks_.reserve(capacity_);
  }
  constexpr AddressRange kEverything{.begin = 0, .end = ~std::uint64_t{0}};
  SegmentId segment = 0;
  std::uint16_t target = 0;
  bool known = false;
  AddressRange local;
  if (open_tasks_ == 0) {
    for (Use& use : uses_) {
      use.still_since = Instant{};  // The time before there was anything to do does not count.
    }
  }
  for (const TransferRequest& request : requests) {
    if (!known || request.segment != segment) {
      target = TargetOf(id, request.segment).value();  // Found: CheckAll made it.
      segment = request.segment;
      known = true;
      local = targets_[target]->view->needs_registration() ? AddressRange{} : kEverything;
      targets_[target]->given_up = 0;
    }
    const auto address = reinterpret_cast<std::uint64_t>(request.local);
    const bool empty = request.length_bytes == 0;
    if (!empty && !local.Contains(address, request.length_bytes)) {
      local = context_.regions->Find(address, request.length_bytes).value_or(AddressRange{});
    }
    tasks_.push_back(Task{
        .local = request.local,
        .remote = request.remote_address,
        .length_bytes = request.length_bytes,
        .done_bytes = 0,
        .slices = 0,
        .reasons = 0,
        .target = target,
        .opcode = request.opcode,
        .state = empty ? TransferState::kCompleted : TransferState::kWaiting,
        .cut = empty,
        .lost = false,
        .registered = empty || local.Contains(address, request.length_bytes),
        .told = false,
    });
    open_tasks_ += empty ? 0 : 1;
  }
  untold_tasks_ += requests.size();
}

Result<void> Batch::Append(BatchId id, std::span<const TransferRequest> requests,
                           const Notification* notify, bool attended) {
  {
    const Guard guard(*this);
    MC_TRY(CheckAll(id, requests));
    AppendTasks(id, requests);
    if (notify != nullptr && !requests.empty()) {
      notifies_.push_back(DueNotify{.segment = requests.front().segment, .notify = *notify});
    }
    if (open_tasks_ == 0) {
      Settle();
      return {};
    }
    ++waiters_;
    Pump();
    --waiters_;
    if (attended || open_tasks_ == 0) {
      return {};
    }
    // Nobody may come to drive, so the reactor takes over; a caller that polls takes it back.
    ReleaseAll();
  }
  if (context_.nudge) {
    context_.nudge();
  }
  return {};
}

void Batch::Poll() {
  if (open_tasks_ == 0 || DriveOnce() || open_tasks_ == 0) {
    return;
  }
  Housekeep(context_.clock->Now(), /*may_fetch=*/!context_.nudge);
}

Result<TransferStatus> Batch::TaskStatus(BatchId id, std::size_t index) {
  const Guard guard(*this);
  MC_TRY(CheckId(id));
  if (index >= tasks_.size()) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("status of task {} of batch {:#x}: it has "
                                                         "{} tasks",
                                                         index, id, tasks_.size()));
  }
  if (!IsTerminal(tasks_[index].state)) {
    Poll();
    MC_TRY(CheckId(id));
  }
  const Task& task = tasks_[index];
  if (IsTerminal(task.state)) {
    NoteTold(index);
  }
  return TransferStatus{.state = task.state, .transferred_bytes = task.done_bytes};
}

Result<TransferStatus> Batch::Status(BatchId id) {
  const Guard guard(*this);
  MC_TRY(CheckId(id));
  Poll();
  MC_TRY(CheckId(id));
  TransferStatus status{.state = TransferState::kWaiting, .transferred_bytes = done_bytes_};
  if (bad_tasks_ != 0) {
    status.state = tasks_[first_bad_].state;
  } else if (open_tasks_ == 0) {
    status.state = TransferState::kCompleted;
  }
  told_of_bad_ = told_of_bad_ || bad_tasks_ != 0;
  if (open_tasks_ == 0) {
    NoteAllTold();
  }
  return status;
}

void Batch::NoteTold(std::size_t index) {
  Task& task = tasks_[index];
  if (index >= all_told_ && !task.told) {
    task.told = true;
    --untold_tasks_;
    told_of_bad_ = told_of_bad_ || task.state != TransferState::kCompleted;
  }
}

void Batch::NoteAllTold() {
  untold_tasks_ = 0;
  all_told_ = tasks_.size();
}

Error Batch::ErrorOf(std::uint32_t index) const {
  const Task& task = tasks_[index];
  return Error{
      .code = reasons_.Code(task.reasons),
      .message = fmt::format("{} {} bytes at {:#x} of segment {} failed after {} bytes: {}",
                             task.opcode == Opcode::kRead ? "read" : "write", task.length_bytes,
                             task.remote, targets_[task.target]->segment->name(), task.done_bytes,
                             reasons_.Text(task.reasons))};
}

Result<Error> Batch::TaskError(BatchId id, std::size_t index) {
  const MutexLock lock(mutex_);
  MC_TRY(CheckId(id));
  if (index >= tasks_.size() || tasks_[index].reasons == 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("error of task {} of batch {:#x}: it has not failed", index, id));
  }
  return ErrorOf(static_cast<std::uint32_t>(index));
}

Result<void> Batch::Wait(BatchId id, Duration timeout) {
  const Guard guard(*this);
  MC_TRY(CheckId(id));
  if (open_tasks_ == 0 && bad_tasks_ == 0) {
    NoteAllTold();
    return {};
  }
  ++waiters_;
  auto outcome = WaitUntilSettled(id, timeout);
  --waiters_;
  // Others may have counted on this thread to drive what they share.
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].path->inflight_bytes.load(std::memory_order_relaxed) != 0) {
      const std::shared_ptr<PeerView> view = uses_[i].view;
      Endpoint& endpoint = *uses_[i].path->endpoint;
      mutex_.unlock();
      endpoint.Release();
      mutex_.lock();
    }
  }
  MC_TRY(outcome);
  MC_TRY(CheckId(id));
  NoteAllTold();
  if (bad_tasks_ != 0) {
    return std::unexpected(ErrorOf(first_bad_));
  }
  return {};
}

Result<void> Batch::WaitUntilSettled(BatchId id, Duration timeout) {
  std::optional<Instant> deadline;
  std::optional<Instant> idle_since;
  std::uint32_t busy_polls = 0;
  std::uint32_t idle_polls = 0;
  bool spinning_pays = true;
  while (open_tasks_ != 0) {
    const std::uint64_t before = ends_;
    const bool moved = DriveOnce() || ends_ != before;
    MC_TRY(CheckId(id));
    if (open_tasks_ == 0) {
      break;
    }
    if (moved) {
      idle_since.reset();
      if (++busy_polls % kBusyPolls != 0) {
        continue;
      }
    }
    const Instant now = context_.clock->Now();
    if (timeout > Duration::zero()) {
      deadline = deadline ? deadline : now + timeout;
      if (now >= *deadline) {
        return Fail(ErrorCode::kTimeout,
                    fmt::format("wait for batch {:#x}: {} of {} tasks are not finished after {} ms",
                                id, open_tasks_, tasks_.size(), timeout.count() / 1'000'000));
      }
    }
    Housekeep(now, /*may_fetch=*/true);
    MC_TRY(CheckId(id));
    if (moved || open_tasks_ == 0) {
      continue;
    }
    if (!idle_since) {
      idle_since = now;
      spinning_pays = SpinningPays(SteadyClock::Get().Now());
    }
    if (now - *idle_since >= context_.spin || !spinning_pays) {
      Sleep(now, deadline);
      MC_TRY(CheckId(id));
    } else if (++idle_polls % kIdlePollsPerYield == 0) {
      // The peer that is to answer, or our reactor, may be queued behind this very thread, on its
      // core.
      mutex_.unlock();
      spinning_pays = YieldCore(SteadyClock::Get().Now());
      mutex_.lock();
      MC_TRY(CheckId(id));
    }
  }
  return {};
}

void Batch::Sleep(Instant now, std::optional<Instant> deadline) {
  // Long enough to cost nothing, short enough to see a stall in time.
  constexpr Duration kLongest = std::chrono::milliseconds(100);
  Duration sleep = std::min(kLongest, context_.stall_limit);
  if (deadline) {
    sleep = std::min(sleep, *deadline - now);
  }
  for (Slice* slice = delayed_.head; slice != nullptr; slice = slice->next) {
    const auto* delayed = static_cast<EngineSlice*>(slice);
    // Whoever clears the suspicion wakes us.
    if (!targets_[tasks_[delayed->task].target]->view->suspect.load(std::memory_order_acquire)) {
      sleep = std::min(sleep, delayed->retry - now);
    }
  }
  const std::uint64_t before = ends_;
  ReleaseAll();
  if (open_tasks_ == 0 || ends_ != before || sleep <= Duration::zero()) {
    return;
  }
  ++sleepers_;
  // Until the batch's end, a failure, or the time to look at the clock; the reactor does the rest.
  changed_.WaitUntil(mutex_, SteadyClock::Get().Now() + sleep);
  --sleepers_;
}

void Batch::Settle() {
  if (sleepers_ != 0) {
    changed_.NotifyAll();
  }
  if (event_fd_ >= 0) {
    ::eventfd_write(event_fd_, 1);
  }
}

Result<int> Batch::CompletionFd(BatchId id) {
  const MutexLock lock(mutex_);
  MC_TRY(CheckId(id));
  if (event_fd_ < 0) {
    event_fd_ = ::eventfd(open_tasks_ == 0 && !tasks_.empty() ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd_ < 0) {
      return Fail(ErrorCode::kIo,
                  "make an eventfd for a batch: no descriptor is free; raise the "
                  "limit of open files");
    }
  }
  return event_fd_;
}

Result<void> Batch::OnCompletion(BatchId id, std::move_only_function<void()> callback) {
  {
    const MutexLock lock(mutex_);
    MC_TRY(CheckId(id));
    if (open_tasks_ != 0 || tasks_.empty()) {
      callback_ = std::move(callback);
      return {};
    }
    NoteAllTold();
  }
  callback();
  return {};
}

std::vector<Batch::DueNotify> Batch::TakeNotifies(BatchId id) {
  const MutexLock lock(mutex_);
  if (id_.load(std::memory_order_relaxed) != id || notifies_.empty() || open_tasks_ != 0 ||
      bad_tasks_ != 0) {
    return {};
  }
  return std::exchange(notifies_, {});
}

Result<void> Batch::Cancel(BatchId id, const Error& why) {
  while (true) {
    {
      const Guard guard(*this);
      MC_TRY(CheckId(id));
      if (open_tasks_ == 0) {
        NoteAllTold();
        return {};
      }
      if (cancel_chain_ == 0) {
        cancel_chain_ = reasons_.Add(0, "", why);
      }
      LoseUnposted(cancel_chain_);
      // What is posted ends through Abort. A pump that is under way may post once more, so go on
      // until nothing is out.
      for (std::size_t i = 0; i < uses_.size(); ++i) {
        if (uses_[i].outstanding != 0) {
          const std::shared_ptr<PeerView> view = uses_[i].view;
          Endpoint& endpoint = *uses_[i].path->endpoint;
          mutex_.unlock();
          endpoint.Abort(why);
          mutex_.lock();
          MC_TRY(CheckId(id));
        }
      }
      if (open_tasks_ == 0) {
        NoteAllTold();
        return {};
      }
    }
    std::this_thread::yield();
  }
}

}  // namespace mooncake::transfer
