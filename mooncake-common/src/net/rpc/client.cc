#include "mooncake-common/src/net/rpc/client.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace mooncake::rpc {

// A call that nobody waits for. Whoever ends it (its connection, its timer, Cancel) does so once,
// and the callback then runs on the reactor's thread.
struct RpcClient::Started::Call : PendingCall, std::enable_shared_from_this<Call> {
  Call(Reactor& the_reactor, Callback the_callback)
      : reactor(the_reactor), callback(std::move(the_callback)) {
    on_ended = [](PendingCall& call) { static_cast<Call&>(call).Finish(); };
  }

  void Finish() {
    reactor.Post([self = std::exchange(self, nullptr)] {
      TimerId limit = TimerId::kNone;
      {
        const MutexLock lock(self->mutex);
        limit = std::exchange(self->timer, TimerId::kNone);
        self->connection = nullptr;
      }
      self->reactor.CancelTimer(limit);
      if (self->error) {
        self->callback(std::unexpected(std::move(*self->error)));
      } else {
        self->callback(std::as_const(self->body).data());
      }
    });
  }

  void GiveUp(Error why) {
    std::shared_ptr<Connection> from;
    {
      const MutexLock lock(mutex);
      from = connection;
    }
    if (from && from->Forget(*this)) {
      error = std::move(why);
      Finish();
    }
  }

  Reactor& reactor;
  Callback callback;
  std::shared_ptr<Call> self;  // While the connection or nobody has it.
  Mutex mutex;
  TimerId timer MC_GUARDED_BY(mutex) = TimerId::kNone;
  std::shared_ptr<Connection> connection MC_GUARDED_BY(mutex);
};

void RpcClient::Started::Cancel() {
  if (call_) {
    call_->GiveUp({ErrorCode::kCancelled, "the call was cancelled by its caller"});
  }
}

Result<std::unique_ptr<RpcClient>> RpcClient::Create(Reactor& reactor, Options options) {
  if (options.connections == 0) {
    return Fail(ErrorCode::kInvalidArgument, "an RPC client needs at least one connection");
  }
  auto addresses = PeerAddresses::Create(options.host, options.port, options.lookup);
  MC_TRY(addresses->WaitUntilKnown(SteadyClock::Get().Now() + options.connect_timeout));
  return std::unique_ptr<RpcClient>(
      new RpcClient(reactor, std::move(options), std::move(addresses)));
}

RpcClient::RpcClient(Reactor& reactor, Options options, std::shared_ptr<PeerAddresses> addresses)
    : reactor_(reactor),
      options_(std::move(options)),
      addresses_(std::move(addresses)),
      name_(addresses_->Describe()),
      backoff_(std::make_shared<Backoff>(options_.backoff_first, options_.backoff_most)),
      connections_(options_.connections) {}

RpcClient::~RpcClient() { Stop(); }

Result<void> RpcClient::Call(std::uint16_t method, std::span<const std::byte> body,
                             Instant deadline, RpcReply& reply) {
  PendingCall& call = reply.call_;
  call.error.reset();
  call.body.Clear();
  call.ended.Reset();
  MC_TRY_ASSIGN(const std::shared_ptr<Connection> connection, Post(method, body, call));
  // Other callers' traffic keeps this one driving, but not beyond its own deadline.
  constexpr std::uint32_t kAsksPerClockRead = 64;
  std::uint32_t asks = 0;
  const auto ended_or_late = [&] {
    return call.ended.IsSet() ||
           (++asks % kAsksPerClockRead == 0 && SteadyClock::Get().Now() >= deadline);
  };
  connection->lane().DriveUntil(ended_or_late, options_.spin);
  if (!call.ended.IsSet() && !call.ended.Wait(deadline, Duration::zero())) {
    if (connection->Forget(call)) {
      return std::unexpected(TooLate(method));
    }
    // It has just ended: whoever did that is about to say so.
    (void)call.ended.Wait(Instant::max());
  }
  if (call.error) {
    return std::unexpected(std::move(*call.error));
  }
  return {};
}

RpcClient::Started RpcClient::Start(std::uint16_t method, std::span<const std::byte> body,
                                    Instant deadline, Callback callback) {
  auto call = std::make_shared<Started::Call>(reactor_, std::move(callback));
  call->self = call;
  auto posted = Post(method, body, *call, [&](const std::shared_ptr<Connection>& connection) {
    const MutexLock lock(call->mutex);
    call->connection = connection;
  });
  Started started;
  started.call_ = call;
  if (!posted) {
    call->error = std::move(posted).error();
    call->Finish();
    return started;
  }
  if (deadline != Instant::max()) {
    const Duration left = std::max<Duration>(deadline - SteadyClock::Get().Now(), Duration::zero());
    const TimerId timer =
        reactor_.After(left, [weak = std::weak_ptr(call), late = TooLate(method)] {
          if (const auto self = weak.lock()) {
            self->GiveUp(late);
          }
        });
    const MutexLock lock(call->mutex);
    // Of a call that has ended meanwhile the timer stays, and finds nothing to do.
    call->timer = timer;
  }
  (*posted)->lane().TryDrive();
  return started;
}

void RpcClient::Stop() {
  std::vector<std::shared_ptr<Connection>> connections;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    connections.swap(connections_);
  }
  for (const auto& connection : connections) {
    if (connection) {
      connection->lane().Close(
          {ErrorCode::kCancelled, fmt::format("the client of {} was stopped", name_)});
    }
  }
}

Result<std::shared_ptr<Connection>> RpcClient::Acquire() {
  const std::uint32_t turn = next_.fetch_add(1, std::memory_order_relaxed);
  std::shared_ptr<Connection> lost;  // Let go of outside the lock.
  const MutexLock lock(mutex_);
  if (stopped_) {
    return Fail(ErrorCode::kCancelled, fmt::format("the client of {} was stopped", name_));
  }
  std::shared_ptr<Connection>& place = connections_[turn % connections_.size()];
  if (place && !place->closed()) {
    return place;
  }
  if (auto refusal = backoff_->Refusal(SteadyClock::Get().Now())) {
    return std::unexpected(*std::move(refusal));
  }
  MC_TRY_ASSIGN(std::shared_ptr<Connection> fresh, Dial());
  lost = std::exchange(place, fresh);
  return fresh;
}

Result<std::shared_ptr<Connection>> RpcClient::Dial() {
  for (;;) {
    MC_TRY_ASSIGN(const auto choice, addresses_->Next());
    MC_CHECK(choice.has_value());  // Create() waited for the first lookup.
    auto fresh = std::make_shared<Connection>(
        reactor_,
        Connection::Options{.addresses = addresses_,
                            .choice = *choice,
                            .name = addresses_->Describe(choice->address),
                            .hello = {.features = options_.features,
                                      .token = options_.token,
                                      .software = options_.software},
                            .welcome_timeout = options_.connect_timeout,
                            .max_queued_bytes = options_.max_queued_bytes},
        backoff_);
    auto dialled = fresh->Dial();
    if (dialled) {
      return fresh;
    }
    if (addresses_->OnFailure(*choice)) {
      backoff_->OnFailure(dialled.error(), SteadyClock::Get().Now());
      return std::unexpected(std::move(dialled).error());
    }
  }
}

Result<std::shared_ptr<Connection>> RpcClient::Post(
    std::uint16_t method, std::span<const std::byte> body, PendingCall& call,
    const std::function<void(const std::shared_ptr<Connection>&)>& before) {
  // A connection may close between being found and being used; the next one then is a new one.
  for (int attempt = 0; attempt < 3; ++attempt) {
    MC_TRY_ASSIGN(auto connection, Acquire());
    if (before) {
      before(connection);
    }
    MC_TRY_ASSIGN(const bool taken, connection->Post(method, body, call));
    if (taken) {
      return connection;
    }
  }
  return Fail(ErrorCode::kUnavailable, fmt::format("{} closes every connection at once", name_));
}

Error RpcClient::TooLate(std::uint16_t method) const {
  return {ErrorCode::kTimeout,
          fmt::format("{} has not answered method {} in time; it is slow, stopped or unreachable",
                      name_, method)};
}

}  // namespace mooncake::rpc
