// Puts the engine's parts together: each method here is a check and a call.
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "mooncake-common/src/base/log.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/engine/batch_table.h"
#include "mooncake-transfer-engine/src/engine/caretaker.h"
#include "mooncake-transfer-engine/src/engine/local_segment.h"
#include "mooncake-transfer-engine/src/engine/managed_memory.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/engine/segment_directory.h"
#include "mooncake-transfer-engine/src/engine/segment_table.h"
#include "mooncake-transfer-engine/src/engine/view_checker.h"
#include "mooncake-transfer-engine/src/transports/transport.h"

namespace mooncake::transfer {

namespace {

std::uint64_t LeastSliceBytes(const EngineOptions& options) {
  std::uint64_t least = std::max<std::uint64_t>(options.max_slice_bytes, 1);
  for (const auto& transport : options.transports) {
    if (const std::uint64_t most = transport->Describe().max_slice_bytes; most != 0) {
      least = std::min(least, most);
    }
  }
  return least;
}

}  // namespace

class Engine::Impl {
 public:
  explicit Impl(EngineOptions given)
      : options(std::move(given)),
        segments(options.name, options.directory, options.transports),
        local(Identity(options), *options.regions, *options.directory, segments),
        batches(context),
        managed({.add =
                     [this](const MemoryRegistration& memory) {
                       return Register(std::span(&memory, 1), /*publish=*/true);
                     },
                 .remove = [this](void* address) { return Forget(address); }}),
        checker(segments, [this] { batches.ForEach([](Batch& batch) { batch.OnChecked(); }); }),
        caretaker([this] { return LookAfterAll(); }) {
    context = BatchContext{.segments = &segments,
                           .regions = options.regions.get(),
                           .clock = options.clock,
                           .stall_limit = options.stall_limit,
                           .spin = options.spin,
                           .attempt_budget = std::max(options.attempt_budget, 1U),
                           .window_slices = std::max(options.window_slices, 1U),
                           .max_slice_bytes = LeastSliceBytes(options),
                           .remote_check = options.remote_check,
                           .nudge = {},
                           .check = {}};
    if (options.caretaker) {
      context.nudge = [this] { caretaker.Nudge(); };
      context.check = [this](Segment& segment, const auto& suspect, Instant now) {
        checker.Check(segment, suspect, now);
      };
    } else {
      context.check = [this](Segment& segment, const auto& suspect, Instant now) {
        if (segments.BeginCheck(segment, *suspect, now)) {
          segments.Check(segment, *suspect);
        }
      };
    }
  }

  static SegmentDescriptor Identity(const EngineOptions& options) {
    SegmentDescriptor identity = options.identity;
    identity.name = options.name;
    return identity;
  }

  Result<void> Register(std::span<const MemoryRegistration> memory, bool publish) {
    std::vector<Region> regions;
    regions.reserve(memory.size());
    for (const MemoryRegistration& one : memory) {
      regions.push_back(Region{.address = reinterpret_cast<std::uint64_t>(one.address),
                               .length_bytes = one.length_bytes,
                               .location = one.location,
                               .remote_accessible = one.remote_accessible,
                               .shared = one.shared});
    }
    MC_TRY(local.Register(regions));
    if (!publish || !running.load()) {
      return {};
    }
    Result<void> published = local.Publish();
    if (published) {
      return {};
    }
    // Some peer may have seen it all the same, and be at work already.
    std::vector<void*> addresses;
    addresses.reserve(memory.size());
    for (const MemoryRegistration& one : memory) {
      addresses.push_back(one.address);
    }
    if (auto undone = TakeOut(addresses); !undone) {
      return Fail(ErrorCode::kBusy,
                  fmt::format("{}; {}", published.error().message, undone.error().message));
    }
    return published;
  }

  Result<void> Unregister(std::span<void* const> addresses, bool publish) {
    Result<void> outcome = TakeOut(addresses);
    if (!publish || !running.load()) {
      return outcome;
    }
    auto published = local.Publish();
    return outcome ? published : outcome;
  }

  // Unregisters what nobody else knows of: where peers look for it is only cleaned up.
  Result<void> Forget(void* address) {
    MC_TRY(TakeOut(std::span(&address, 1)));
    if (!running.load()) {
      return {};
    }
    if (auto published = local.Publish(); !published) {
      MC_LOG_WARNING(
          "segment {} is announced with memory that was freed, until it is announced "
          "again: {}",
          options.name, published.error().message);
    }
    return {};
  }

  // Out of everybody's reach, whatever peers may still read about it.
  Result<void> TakeOut(std::span<void* const> addresses) {
    auto [outcome, announced] = local.Unregister(addresses, options.unregister_patience);
    if (announced && options.revoke_announced && running.load()) {
      if (auto revoked = options.revoke_announced(); !revoked && outcome) {
        outcome = std::move(revoked);
      }
      local.SetIdentity(Announced());
    }
    return std::move(outcome);
  }

  // Our identity as the running transports complete it.
  [[nodiscard]] SegmentDescriptor Announced() const {
    SegmentDescriptor identity = Identity(options);
    for (const auto& transport : options.transports) {
      transport->Announce(identity);
    }
    return identity;
  }

  bool LookAfterAll() {
    bool open = false;
    batches.ForEach(
        [&open](Batch& batch) { open = (batch.id() != 0 && batch.LookAfter()) || open; });
    return open;
  }

  Result<Batch*> FindBatch(BatchId id) const {
    Batch* batch = batches.Find(id);
    if (batch == nullptr) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("use batch {:#x}: it was freed or never allocated", id));
    }
    return batch;
  }

  Result<Segment*> FindSegment(SegmentId id) const {
    Segment* segment = segments.Find(id);
    if (segment == nullptr) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("use segment {}: no such segment; open it first", id));
    }
    return segment;
  }

  Result<void> CheckRunning(const char* what) const {
    if (!running.load(std::memory_order_acquire)) [[unlikely]] {
      return Fail(ErrorCode::kCancelled,
                  fmt::format("{}: engine {} is not running", what, options.name));
    }
    return {};
  }

  void SendDue(Batch& batch, BatchId id) {
    for (const Batch::DueNotify& due : batch.TakeNotifies(id)) {
      const Segment* segment = segments.Find(due.segment);
      if (auto sent = options.directory->SendNotify(segment->name(), due.notify); !sent) {
        MC_LOG_WARNING("notify {} to segment {}: {}", due.notify.name, segment->name(),
                       sent.error().ToString());
      }
    }
  }

  EngineOptions options;
  BatchContext context;
  SegmentTable segments;
  LocalSegment local;
  BatchTable batches;
  ManagedMemory managed;
  std::atomic<bool> running = false;
  Mutex stop_mutex;
  CondVar stopped;
  bool started MC_GUARDED_BY(stop_mutex) = false;
  std::thread::id stopper MC_GUARDED_BY(stop_mutex);  // Who is inside Stop().
  // Last: their threads use the rest.
  ViewChecker checker;
  Caretaker caretaker;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine::~Engine() { Stop(); }

Result<std::unique_ptr<Engine>> Engine::Create(EngineOptions options) {
  if (options.name.empty() || options.directory == nullptr || options.transports.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "create an engine: it needs a name, a segment directory and a transport");
  }
  if (options.transports.size() > PathChooser::kMaxPaths) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("create an engine with {} transports; {} at most",
                            options.transports.size(), PathChooser::kMaxPaths));
  }
  if (options.clock == nullptr) {
    options.clock = &SteadyClock::Get();
  }
  if (options.regions == nullptr) {
    options.regions = std::make_shared<RegionTable>();
  }
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(std::move(options))));
}

Result<void> Engine::Start() {
  Impl& engine = *impl_;
  const MutexLock lock(engine.stop_mutex);
  if (engine.started) {
    return Fail(ErrorCode::kAlreadyExists,
                fmt::format("start engine {}: it was started already", name()));
  }
  for (const auto& transport : engine.options.transports) {
    if (auto up = transport->Start(); !up) {
      for (const auto& other : engine.options.transports) {
        other->Stop();
      }
      return up;
    }
  }
  engine.local.SetIdentity(engine.Announced());
  engine.started = true;
  engine.running.store(true, std::memory_order_release);
  if (auto published = engine.local.Publish(); !published) {
    engine.running.store(false);
    for (const auto& transport : engine.options.transports) {
      transport->Stop();
    }
    return published;
  }
  return {};
}

void Engine::Stop() {
  Impl& engine = *impl_;
  {
    const MutexLock lock(engine.stop_mutex);
    if (!engine.running.exchange(false)) {
      // Another thread may be at it; or this one, which is in a callback then.
      while (engine.stopper != std::thread::id() && engine.stopper != std::this_thread::get_id()) {
        engine.stopped.Wait(engine.stop_mutex);
      }
      return;
    }
    engine.stopper = std::this_thread::get_id();
  }
  const Error why{.code = ErrorCode::kCancelled,
                  .message = fmt::format("engine {} is stopping", name())};
  engine.batches.ForEach([&why](Batch& batch) {
    if (const BatchId id = batch.id(); id != 0) {
      static_cast<void>(batch.Cancel(id, why));  // An error: it was freed meanwhile.
    }
  });
  engine.options.directory->Interrupt();
  engine.caretaker.Stop();
  engine.checker.Stop();
  if (auto withdrawn = engine.local.Withdraw(); !withdrawn) {
    MC_LOG_WARNING("withdraw segment {}: {}", name(), withdrawn.error().ToString());
  }
  engine.segments.Clear();
  for (const auto& transport : engine.options.transports) {
    transport->Stop();
  }
  const MutexLock lock(engine.stop_mutex);
  engine.stopper = std::thread::id();
  engine.stopped.NotifyAll();
}

const std::string& Engine::name() const { return impl_->options.name; }

std::uint16_t Engine::rpc_port() const { return impl_->options.rpc_port; }

Result<void> Engine::RegisterMemory(std::span<const MemoryRegistration> memory, bool publish) {
  return impl_->Register(memory, publish);
}

Result<void> Engine::UnregisterMemory(std::span<void* const> addresses, bool publish) {
  return impl_->Unregister(addresses, publish);
}

bool Engine::OverlapsRegistered(const void* address, std::uint64_t length_bytes) const {
  return impl_->options.regions->Overlaps(reinterpret_cast<std::uint64_t>(address), length_bytes);
}

bool Engine::HoldsRegistered(const void* address, std::uint64_t length_bytes) const {
  return impl_->options.regions->Find(reinterpret_cast<std::uint64_t>(address), length_bytes)
      .has_value();
}

Result<void*> Engine::AllocateManaged(std::uint64_t length_bytes, const ManagedOptions& options) {
  return impl_->managed.Allocate(length_bytes, options);
}

Result<void> Engine::FreeManaged(void* address) { return impl_->managed.Free(address); }

std::shared_ptr<const void> Engine::HoldManaged(void* address) {
  return impl_->managed.Hold(address);
}

std::shared_ptr<const SegmentDescriptor> Engine::LocalDescriptor() const {
  return impl_->local.Descriptor();
}

Result<SegmentId> Engine::OpenSegment(std::string_view segment_name) {
  MC_TRY(impl_->CheckRunning("open segment"));
  MC_TRY_ASSIGN(const SegmentId id, impl_->segments.Open(segment_name));
  if (impl_->options.refresh_on_open && id != kLocalSegment) {
    MC_TRY(RefreshSegment(id));
  }
  return id;
}

Result<void> Engine::CloseSegment(SegmentId id) {
  MC_TRY_ASSIGN(Segment* const segment, impl_->FindSegment(id));
  impl_->segments.Drop(*segment);
  impl_->segments.Purge();
  return {};
}

Result<void> Engine::RefreshSegment(SegmentId id) {
  MC_TRY(impl_->CheckRunning("refresh segment"));
  MC_TRY_ASSIGN(Segment* const segment, impl_->FindSegment(id));
  return impl_->segments.Refresh(*segment);
}

Result<void> Engine::RefreshAllSegments() {
  Result<void> outcome;
  for (SegmentId id = 1; id < impl_->segments.size(); ++id) {
    if (auto refreshed = RefreshSegment(id); !refreshed && outcome) {
      outcome = std::move(refreshed);
    }
  }
  return outcome;
}

Result<std::shared_ptr<const SegmentDescriptor>> Engine::Descriptor(SegmentId id) {
  if (id == kLocalSegment) {
    return LocalDescriptor();
  }
  MC_TRY_ASSIGN(Segment* const segment, impl_->FindSegment(id));
  MC_TRY_ASSIGN(const auto view, impl_->segments.View(*segment));
  return view->SharedDescriptor();
}

Result<void> Engine::RemoveDescriptor(std::string_view name) {
  MC_TRY(impl_->CheckRunning("remove a descriptor"));
  return impl_->options.directory->Remove(std::string(name));
}

Result<BatchId> Engine::AllocateBatch(std::size_t capacity) {
  MC_TRY(impl_->CheckRunning("allocate a batch"));
  return impl_->batches.Allocate(capacity);
}

Result<void> Engine::Submit(BatchId id, std::span<const TransferRequest> requests) {
  MC_TRY(impl_->CheckRunning("submit"));
  MC_TRY_ASSIGN(Batch* const batch, impl_->FindBatch(id));
  return batch->Append(id, requests, nullptr, /*attended=*/false);
}

Result<void> Engine::SubmitWithNotify(BatchId id, std::span<const TransferRequest> requests,
                                      const Notification& notify) {
  MC_TRY(impl_->CheckRunning("submit"));
  MC_TRY_ASSIGN(Batch* const batch, impl_->FindBatch(id));
  return batch->Append(id, requests, &notify, /*attended=*/false);
}

Result<TransferStatus> Engine::TaskStatus(BatchId id, std::size_t task) {
  MC_TRY_ASSIGN(Batch* const batch, impl_->FindBatch(id));
  auto status = batch->TaskStatus(id, task);
  if (status && IsTerminal(status->state)) {
    impl_->SendDue(*batch, id);
  }
  return status;
}

Result<TransferStatus> Engine::BatchStatus(BatchId id) {
  MC_TRY_ASSIGN(Batch* const batch, impl_->FindBatch(id));
  auto status = batch->Status(id);
  if (status && IsTerminal(status->state)) {
    impl_->SendDue(*batch, id);
  }
  return status;
}

Result<Error> Engine::TaskError(BatchId id, std::size_t task) {
  MC_TRY_ASSIGN(Batch* const batch, impl_->FindBatch(id));
  return batch->TaskError(id, task);
}

Result<void> Engine::Wait(BatchId id, Duration timeout) {
  MC_TRY_ASSIGN(Batch* const batch, impl_->FindBatch(id));
  MC_TRY(batch->Wait(id, timeout));
  impl_->SendDue(*batch, id);
  return {};
}

Result<int> Engine::CompletionFd(BatchId id) {
  MC_TRY_ASSIGN(Batch* const batch, impl_->FindBatch(id));
  return batch->CompletionFd(id);
}

Result<void> Engine::OnCompletion(BatchId id, std::move_only_function<void()> callback) {
  MC_TRY_ASSIGN(Batch* const batch, impl_->FindBatch(id));
  return batch->OnCompletion(id, std::move(callback));
}

Result<void> Engine::Cancel(BatchId id) {
  MC_TRY_ASSIGN(Batch* const batch, impl_->FindBatch(id));
  return batch->Cancel(id, Error{.code = ErrorCode::kCancelled, .message = "cancelled on request"});
}

Result<void> Engine::FreeBatch(BatchId id) { return impl_->batches.Free(id); }

Result<void> Engine::Transfer(std::span<const TransferRequest> requests, Duration timeout) {
  MC_TRY(impl_->CheckRunning("transfer"));
  if (requests.empty()) {
    return {};
  }
  MC_TRY_ASSIGN(const BatchTable::Borrowed borrowed, impl_->batches.Borrow(requests.size()));
  Batch& batch = *borrowed.batch;
  auto outcome = batch.Append(borrowed.id, requests, nullptr, /*attended=*/true);
  if (outcome) {
    outcome = batch.Wait(borrowed.id, timeout);
    if (!outcome) {
      // Other tasks than the failed one may still be moving, or the time is over.
      static_cast<void>(batch.Cancel(borrowed.id, outcome.error()));
    }
  }
  impl_->batches.Return(borrowed);
  return outcome;
}

Result<void> Engine::SendNotify(std::string_view segment_name, const Notification& notify) {
  MC_TRY(impl_->CheckRunning("send a notify"));
  return impl_->options.directory->SendNotify(std::string(segment_name), notify);
}

Result<void> Engine::SendNotify(SegmentId id, const Notification& notify) {
  MC_TRY_ASSIGN(const Segment* const segment, impl_->FindSegment(id));
  return SendNotify(segment->name(), notify);
}

std::vector<Notification> Engine::TakeNotifies() {
  return impl_->running.load() ? impl_->options.directory->TakeNotifies()
                               : std::vector<Notification>();
}

Result<void> Engine::ProbePeer(std::string_view segment_name) {
  MC_TRY(impl_->CheckRunning("probe"));
  return impl_->options.directory->Probe(std::string(segment_name));
}

Result<void> Engine::ProbePeer(SegmentId id) {
  MC_TRY_ASSIGN(const Segment* const segment, impl_->FindSegment(id));
  return ProbePeer(segment->name());
}

}  // namespace mooncake::transfer
