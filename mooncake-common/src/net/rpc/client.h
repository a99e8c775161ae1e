// The RPC client: many threads share a connection or a few, and who waits for an answer fetches it
// in its own thread.
//
//   MC_TRY_ASSIGN(auto client, RpcClient::Create(reactor, {.host = "127.0.0.1", .port = port}));
//   RpcReply reply;                                        // Reused from call to call.
//   MC_TRY(client->Call(kEcho, body, now + 1s, reply));    // Then reply.body().
//
// A connection is dialled by the first call that needs it, and again by the next call after it was
// lost. Each dial takes the next of the server's addresses until one is reached; when none could
// be, calls fail at once between attempts (backoff_*), and the name is looked up anew meanwhile. A
// call whose connection is lost fails with kUnavailable and is not repeated: it may have been
// served.
//
// Thread-safety: any method from any thread, but Call and Stop not from a callback or a handler.
// Ownership:     borrows the reactor, which must run and outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/rpc/connection.h"

namespace mooncake::rpc {

// The answer of one call at a time, and the memory for it.
//
// Thread-safety: one call at a time.
class RpcReply {
 public:
  RpcReply() = default;
  RpcReply(const RpcReply&) = delete;
  RpcReply& operator=(const RpcReply&) = delete;

  // Of the last successful call; valid until the next one. Begins at a multiple of 8 bytes.
  [[nodiscard]] std::span<const std::byte> body() const { return call_.body.data(); }

 private:
  friend class RpcClient;
  PendingCall call_;
};

class RpcClient {
 public:
  struct Options {
    std::string host;
    std::uint16_t port = 0;
    std::string token;
    std::string software = "mooncake";
    std::uint64_t features = 0;
    std::size_t connections = 1;
    Duration connect_timeout = std::chrono::seconds(5);  // Until the server's welcome, by address.
    NameLookup lookup = ResolveAddresses;                // Of the host; for tests.
    Duration spin = kDefaultSpin;                        // Before a waiting caller sleeps.
    Duration backoff_first = std::chrono::milliseconds(10);
    Duration backoff_most = std::chrono::seconds(1);
    std::size_t max_queued_bytes = std::size_t{128} << 20;  // For a server that does not read.
  };
  // Runs on the reactor's thread; the body lives for the call.
  using Callback = std::move_only_function<void(Result<std::span<const std::byte>> reply)>;

  // A call that was started, so that it can be cancelled.
  class Started {
   public:
    Started() = default;
    // The callback gets kCancelled unless the call ended before.
    void Cancel();

   private:
    friend class RpcClient;
    struct Call;
    std::shared_ptr<Call> call_;
  };

  // Resolves the host (which may block, up to connect_timeout), and dials nothing yet.
  //
  // Errors: kDns, kTimeout, kInvalidArgument.
  [[nodiscard]] static Result<std::unique_ptr<RpcClient>> Create(Reactor& reactor, Options options);
  ~RpcClient();  // Stops.
  RpcClient(const RpcClient&) = delete;
  RpcClient& operator=(const RpcClient&) = delete;

  // Asks and waits for the answer until `deadline` (of SteadyClock).
  //
  // Errors: kUnavailable (cannot be reached, or lost meanwhile), kTimeout, kCancelled (Stop),
  // kPermissionDenied or kNotSupported (the server refuses us), kInvalidArgument and kExhausted
  // (see Connection::Post), kMalformed, and whatever the handler answers.
  [[nodiscard]] Result<void> Call(std::uint16_t method, std::span<const std::byte> body,
                                  Instant deadline, RpcReply& reply);

  // Asks, and has `callback` called exactly once, with the same errors. `body` is copied.
  Started Start(std::uint16_t method, std::span<const std::byte> body, Instant deadline,
                Callback callback);

  // Ends all calls with kCancelled, and refuses later ones. Twice is fine.
  void Stop();

 private:
  RpcClient(Reactor& reactor, Options options, std::shared_ptr<PeerAddresses> addresses);
  [[nodiscard]] Result<std::shared_ptr<Connection>> Acquire();
  [[nodiscard]] Result<std::shared_ptr<Connection>> Dial();
  // Finds a connection, dials if need be, and posts; `before` hears of each connection that is
  // tried.
  [[nodiscard]] Result<std::shared_ptr<Connection>> Post(
      std::uint16_t method, std::span<const std::byte> body, PendingCall& call,
      const std::function<void(const std::shared_ptr<Connection>&)>& before = {});
  [[nodiscard]] Error TooLate(std::uint16_t method) const;

  Reactor& reactor_;
  const Options options_;
  const std::shared_ptr<PeerAddresses> addresses_;
  const std::string name_;
  const std::shared_ptr<Backoff> backoff_;
  std::atomic<std::uint32_t> next_{0};
  Mutex mutex_;
  bool stopped_ MC_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Connection>> connections_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::rpc
