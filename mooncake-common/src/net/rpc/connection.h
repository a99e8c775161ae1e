// One connection of an RPC client: what its callers post goes out together, and answers go to
// whoever waits for them.
//
// Thread-safety: any method but those of LaneDriver, which the lane calls, from any thread.
// Ownership:     shared by its client and its callers; the last one must not let go of it from
//                within the lane's driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/concurrency/slab.h"
#include "mooncake-common/src/net/lane.h"
#include "mooncake-common/src/net/peer_addresses.h"
#include "mooncake-common/src/net/rpc/byte_buffer.h"
#include "mooncake-common/src/net/rpc/frame.h"
#include "mooncake-common/src/net/rpc/hello.h"

namespace mooncake::rpc {

// A call under way. Its owner keeps it alive until it has ended or Forget() was true.
struct PendingCall {
  std::uint64_t id = 0;
  std::optional<Error> error;
  ByteBuffer body;
  Event ended;
  // Called instead of ended.Notify() if set; the last thing done with the call.
  void (*on_ended)(PendingCall& call) = nullptr;
};

// How long to leave a server alone that could not be reached at any address. Shared by a client's
// connections.
//
// Thread-safety: any thread.
class Backoff {
 public:
  Backoff(Duration first, Duration most) : first_(first), most_(most) {}

  void OnWelcome();
  void OnFailure(const Error& why, Instant now);
  // Why not now; empty: try.
  [[nodiscard]] std::optional<Error> Refusal(Instant now) const;

 private:
  const Duration first_;
  const Duration most_;
  mutable Mutex mutex_;
  Duration current_ MC_GUARDED_BY(mutex_){};
  Instant until_ MC_GUARDED_BY(mutex_){};
  Error why_ MC_GUARDED_BY(mutex_);
};

class Connection final : public LaneDriver, public std::enable_shared_from_this<Connection> {
 public:
  struct Options {
    std::shared_ptr<PeerAddresses> addresses;  // Of the server; hears what became of
    PeerAddresses::Choice choice;              // the one that is dialled.
    std::string name;                          // Of the server, for messages.
    Hello hello;
    Duration welcome_timeout{};
    std::size_t max_queued_bytes = 0;
  };

  Connection(Reactor& reactor, Options options, std::shared_ptr<Backoff> backoff);
  ~Connection() override;

  // Dials and posts the hello. Once, before anything else. Errors: kUnavailable, kExhausted.
  [[nodiscard]] Result<void> Dial();

  // Queues a request; enter the lane then. False: closed, and the call was not touched.
  //
  // Errors: kInvalidArgument for too large a body, kExhausted when the server does not read.
  [[nodiscard]] Result<bool> Post(std::uint16_t method, std::span<const std::byte> body,
                                  PendingCall& call);

  // True: the call will not be ended by this connection any more. False: it has ended or is about
  // to.
  bool Forget(PendingCall& call);

  [[nodiscard]] Lane& lane() { return *lane_; }
  [[nodiscard]] bool closed() const { return lane_->closed(); }

  Result<Progress> Drive(int fd) override;
  bool HasPending() override;
  bool WantsWrite() override;
  void OnClosed(const Error& why) override;

 private:
  // Queued requests become what is being sent.
  void TakeQueued();
  Result<Progress> Send(int fd);
  Result<Progress> Receive(int fd);
  // Once sending has failed: takes what had arrived before, answers as well as a refusal in words,
  // which is then the error.
  Result<void> ReceiveTheLast(int fd);
  Result<void> TakeFrame(const Frame& frame);
  Result<void> TakeWelcome(const Frame& frame);
  static void End(PendingCall& call);

  Reactor& reactor_;
  const Options options_;
  const std::shared_ptr<Backoff> backoff_;
  std::atomic<bool> welcome_{false};  // The server has welcomed us; the lane's holder says so.
  std::atomic<TimerId> welcome_timer_{TimerId::kNone};

  // The lane's holder has these.
  ByteBuffer sending_;
  ByteBuffer received_;
  std::size_t missing_bytes_ = 0;  // Of the frame that has begun to arrive.
  std::uint64_t unanswered_ = 0;   // Sent, and neither answered nor refused.
  bool blocked_ = false;           // The socket took less than it was offered.

  mutable Mutex mutex_;
  ByteBuffer queued_ MC_GUARDED_BY(mutex_);
  std::uint64_t queued_calls_ MC_GUARDED_BY(mutex_) = 0;
  Slab<PendingCall*> calls_ MC_GUARDED_BY(mutex_);  // By their id.
  bool refusing_ MC_GUARDED_BY(mutex_) = false;     // Closed: posts come too late.

  std::unique_ptr<Lane> lane_;
};

}  // namespace mooncake::rpc
