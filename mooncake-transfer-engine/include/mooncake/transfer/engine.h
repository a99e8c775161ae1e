// The transfer engine as other modules use it: register memory, open segments, move bytes.
//
// Thread-safety: every method, from any thread at once. Threads that work with batches of their own
//                share no lock on the data path.
// Blocking:      OpenSegment, RefreshSegment, SendNotify, ProbePeer and a publishing registration
//                ask the network, and so do submitting calls after CloseSegment or for memory that
//                the peer had not registered when it was last asked; Wait and Transfer wait for
//                bytes; nothing else blocks.
// Ownership:     the caller keeps the memory of a request alive and registered until its task is
//                terminal. A task is only terminal when no slice of it is in flight any more: its
//                memory is not touched afterwards, however it ended.
// Lifetime:      Create() starts nothing; Start() begins, Stop() ends what is in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/engine/remote_check.h"
#include "mooncake-transfer-engine/src/metadata/metadata.h"
#include "mooncake-transfer-engine/src/metadata/segment_descriptor.h"
#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake {
class Reactor;
}

namespace mooncake::transfer {

using Notify = Notification;

class RegionTable;
class SegmentDirectory;
class Transport;

using SegmentId = std::uint64_t;
inline constexpr SegmentId kLocalSegment = 0;

// Never 0 and never UINT64_MAX. Carries a generation: the id of a freed batch is an error for ever.
using BatchId = std::uint64_t;

struct TransferRequest {
  Opcode opcode = Opcode::kRead;
  std::byte* local = nullptr;
  SegmentId segment = kLocalSegment;
  std::uint64_t remote_address = 0;  // In the peer's address space.
  std::uint64_t length_bytes = 0;    // An empty request completes at once.
};

// Values are those of the public APIs.
enum class TransferState : std::uint8_t {
  kWaiting = 0,
  kPending = 1,
  kInvalid = 2,
  kCanceled = 3,
  kCompleted = 4,
  kTimeout = 5,
  kFailed = 6,
};

[[nodiscard]] constexpr bool IsTerminal(TransferState state) {
  return state >= TransferState::kInvalid;
}

struct TransferStatus {
  TransferState state = TransferState::kWaiting;
  std::uint64_t transferred_bytes = 0;  // Of whole slices.
};

struct MemoryRegistration {
  void* address = nullptr;
  std::uint64_t length_bytes = 0;
  std::string location = "*";
  bool remote_accessible = true;       // Listed in the descriptor that peers see.
  std::optional<SharedMemory> shared;  // When the pages are those of a sealed memfd.
};

struct ManagedOptions {
  std::string location = "*";
  bool remote_accessible = true;
  bool dedicated = false;  // Its own file and registration, whatever the length.
  bool warm = false;       // Of a dedicated file: its pages are made soon, in the background.
};

// The parts an engine is made of. Most callers want CreateEngine() of factory.h, which makes them.
struct EngineOptions {
  std::shared_ptr<Reactor> reactor;  // What the parts below need to live last; may be empty.
  std::string name;                  // Of the local segment, as peers open it.
  std::uint16_t rpc_port = 0;        // Of the handshake listener, for whoever asks.
  std::vector<std::unique_ptr<Transport>> transports;
  std::shared_ptr<SegmentDirectory> directory;
  std::shared_ptr<RegionTable> regions;  // Shared with transports that serve; empty = a new one.
  const Clock* clock = nullptr;          // nullptr = the machine's.
  SegmentDescriptor identity;            // Fields that no transport announces (incarnation, host).

  Duration stall_limit = std::chrono::seconds(30);  // No byte moved for so long: abort, resend.
  std::uint32_t attempt_budget = 6;                 // Tries of one slice, the first included.
  std::uint32_t window_slices = 1024;               // Cut and not ended, of one batch.
  std::uint64_t max_slice_bytes = 16U << 20U;
  Duration spin = std::chrono::microseconds(50);  // A waiting caller polls so long before sleeping.
  Duration unregister_patience = std::chrono::seconds(5);
  RemoteCheck remote_check = RemoteCheck::kAuto;  // Of requests to peers.
  bool refresh_on_open = false;                   // OpenSegment asks the directory each time.
  // Makes descriptors announced so far useless to peers that copy without asking this process.
  // Called after memory was unregistered; the transports then announce anew.
  std::function<Result<void>()> revoke_announced;
  // A thread that watches what nobody polls (stalls, resends), and short-lived ones that ask again
  // for peers whose transfers fail. They start when they are needed. Without them, polling and
  // waiting callers do their work.
  bool caretaker = true;
};

class Engine {
 public:
  // Errors: kInvalidArgument without a name, a directory or a transport.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> Create(EngineOptions options);
  ~Engine();  // Stop() first.
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Starts the transports and publishes the empty local segment.
  [[nodiscard]] Result<void> Start();
  // Refuses new work, cancels what is in flight, withdraws the segment. May be called twice.
  void Stop();

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::uint16_t rpc_port() const;

  // ---- Memory ----

  // All, or none. `publish` = false leaves announcing to a later call (peers that ask this process
  // directly see it at once).
  //
  // Errors: kInvalidArgument (length 0), kAddressOverlapped, those of the directory, and kBusy when
  // that failed and a peer uses the memory already: unregister it before it is given back.
  [[nodiscard]] Result<void> RegisterMemory(std::span<const MemoryRegistration> memory,
                                            bool publish = true);
  // `addresses`: where registered ranges begin. Waits for peers that are just being served.
  //
  // What was announced to peers is revoked in any case; `publish` only tells them of the rest. A
  // copy that a peer on this host has begun may end a little later.
  //
  // Errors: kAddressNotRegistered (the others are still taken out), kTimeout (keep that memory).
  // After those of the directory the memory is out of reach all the same.
  [[nodiscard]] Result<void> UnregisterMemory(std::span<void* const> addresses,
                                              bool publish = true);
  [[nodiscard]] bool OverlapsRegistered(const void* address, std::uint64_t length_bytes) const;
  // Whether one registered range holds the whole of this one.
  [[nodiscard]] bool HoldsRegistered(const void* address, std::uint64_t length_bytes) const;

  // Registered memory that peers on this host can map. Pages are made by their first use, unless
  // they are to be warm.
  // Lengths up to 256 MiB are rounded up to 8 KiB * 2^k and carved from shared arenas.
  [[nodiscard]] Result<void*> AllocateManaged(std::uint64_t length_bytes,
                                              const ManagedOptions& options = {});
  // Errors: kAddressNotRegistered for what AllocateManaged did not give; kTimeout when a peer still
  // uses it: try again.
  [[nodiscard]] Result<void> FreeManaged(void* address);
  // Keeps a dedicated range mapped as long as the result lives, also beyond FreeManaged() and the
  // engine's end; null for any other address.
  [[nodiscard]] std::shared_ptr<const void> HoldManaged(void* address);

  // What peers see of this process. Never changes; a later registration makes a new one.
  [[nodiscard]] std::shared_ptr<const SegmentDescriptor> LocalDescriptor() const;

  // ---- Segments ----

  // 0 for our own name, else 1, 2, 3 ... in order of first opening; the same name gives the same
  // id. A leading '/' is dropped.
  [[nodiscard]] Result<SegmentId> OpenSegment(std::string_view name);
  // Lets go of connections; the id stays valid and reconnects on use.
  [[nodiscard]] Result<void> CloseSegment(SegmentId segment);
  // Fetches the descriptor again. On an error the old one stays in use.
  [[nodiscard]] Result<void> RefreshSegment(SegmentId segment);
  [[nodiscard]] Result<void> RefreshAllSegments();
  [[nodiscard]] Result<std::shared_ptr<const SegmentDescriptor>> Descriptor(SegmentId segment);
  // Deletes what a metadata server holds about a segment, of a process known to be gone. Between
  // peers there is nothing to delete.
  [[nodiscard]] Result<void> RemoveDescriptor(std::string_view name);

  // ---- Batches ----

  // Errors: kInvalidArgument for capacity 0, kExhausted when too many batches are alive.
  [[nodiscard]] Result<BatchId> AllocateBatch(std::size_t capacity);

  // Appends one task a request, in order, or nothing at all.
  //
  // Errors: kNotFound (stale batch id, unknown segment), kExhausted (over the capacity),
  // kAddressNotRegistered (remote range, with its segment), kUnavailable (no path).
  [[nodiscard]] Result<void> Submit(BatchId batch, std::span<const TransferRequest> requests);
  // `notify` goes to the segment of the first request once all tasks were seen completed by a
  // status call or Wait.
  [[nodiscard]] Result<void> SubmitWithNotify(BatchId batch,
                                              std::span<const TransferRequest> requests,
                                              const Notification& notify);

  // Polling drives progress on the calling thread.
  [[nodiscard]] Result<TransferStatus> TaskStatus(BatchId batch, std::size_t task);
  // kFailed (kTimeout) from the first such task on; kCompleted when all are, so also when empty.
  [[nodiscard]] Result<TransferStatus> BatchStatus(BatchId batch);
  // Why a task failed: the reason of every attempt. kInvalidArgument when it did not.
  [[nodiscard]] Result<Error> TaskError(BatchId batch, std::size_t task);

  // Until all tasks are terminal; the error of the first failed one. kTimeout after `timeout`
  // (the batch goes on). Zero = no limit but the stall limit.
  [[nodiscard]] Result<void> Wait(BatchId batch, Duration timeout = Duration::zero());

  // An eventfd that becomes readable when all submitted tasks are terminal; it is the batch's own
  // and closes when the batch is freed.
  [[nodiscard]] Result<int> CompletionFd(BatchId batch);
  // Called once when all submitted tasks are terminal, on whichever thread finished them (at once
  // when they are already). Must not block.
  [[nodiscard]] Result<void> OnCompletion(BatchId batch, std::move_only_function<void()> callback);

  // Ends all tasks that are not terminal as kCanceled. Their memory is not touched afterwards.
  [[nodiscard]] Result<void> Cancel(BatchId batch);

  // Errors: kBusy until all tasks are terminal and the caller has been told so (by a status of each
  // or of the batch, of a failed one, by Wait, Cancel, the callback or the eventfd), kNotFound for
  // a stale id.
  [[nodiscard]] Result<void> FreeBatch(BatchId batch);

  // All requests, start to end, on the calling thread: the shortest way for few and small ones.
  // After an error or a timeout no memory of theirs is touched any more. Zero = no limit but the
  // stall limit.
  [[nodiscard]] Result<void> Transfer(std::span<const TransferRequest> requests,
                                      Duration timeout = Duration::zero());

  // ---- Small messages ----

  [[nodiscard]] Result<void> SendNotify(std::string_view segment_name, const Notification& notify);
  [[nodiscard]] Result<void> SendNotify(SegmentId segment, const Notification& notify);
  // What peers have sent since the last call, oldest first.
  [[nodiscard]] std::vector<Notification> TakeNotifies();
  // Whether the peer's process answers.
  [[nodiscard]] Result<void> ProbePeer(std::string_view segment_name);
  [[nodiscard]] Result<void> ProbePeer(SegmentId segment);

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mooncake::transfer
