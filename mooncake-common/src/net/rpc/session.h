// One connection of an RPC server: reads a burst, answers every request in it, writes once.
//
// Thread-safety: none; everything runs on its reactor's thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mooncake-common/src/base/log_fold.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/rpc/byte_buffer.h"
#include "mooncake-common/src/net/rpc/frame.h"
#include "mooncake-common/src/net/rpc/hello.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake::rpc {

// What all sessions of a server share. Constant after Start() but for the counters.
struct ServerShared {
  std::vector<RpcHandler> handlers;  // By method.
  Hello ours;
  std::size_t max_unread_bytes = 0;
  Duration hello_timeout{};

  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> open{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> unknown_methods{0};
  std::atomic<std::uint64_t> thrown{0};
  std::atomic<std::uint64_t> pauses{0};
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(RpcClose::kCount)> closed{};
  std::array<LogFold, static_cast<std::size_t>(RpcClose::kCount)> folds;  // Of their lines.
};

class Session;

// The open sessions of a thread, in the order in which they were last heard, the longest silent
// first; those that have not said hello yet apart.
struct SessionOrder {
  std::list<Session*> strangers;
  std::list<Session*> known;

  [[nodiscard]] std::size_t size() const { return strangers.size() + known.size(); }
  // Only when there is one.
  [[nodiscard]] Session& LongestSilent() const {
    return strangers.empty() ? *known.front() : *strangers.front();
  }
};

class Session {
 public:
  // `on_closed` is called once, perhaps from within a callback of the session: it must not destroy
  // the session at once.
  Session(Reactor& reactor, UniqueFd fd, PeerInfo peer, ServerShared& shared, SessionOrder& order,
          std::function<void(Session&)> on_closed);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Begins to serve. Errors: those of Reactor::Watch.
  [[nodiscard]] Result<void> Start();

  // Reads no more; closes as soon as what was answered is sent.
  void Drain();

  // Closes now.
  void Close(RpcClose reason);

  [[nodiscard]] const PeerInfo& peer() const { return peer_; }

 private:
  void OnEvents(std::uint32_t events);
  void ReadBurst();
  // Answers what has arrived whole, unless the peer does not read.
  void Process();
  // Returns false if the session ended.
  bool Greet(const Frame& frame);
  void Answer(const Frame& frame);
  // Has `call(reply)` answer, after what is in out_. False: it has not, and out_ is as before.
  template <typename Call>
  bool AnswerBy(FrameHeader request, Call call);
  // One step of the first answer that takes long.
  void Step();
  // Has a step made after others have had their turn, if there is any, unless the peer does not
  // read: then whoever flushes next looks again.
  void StepSoon();
  // The peer is not read: it does not read either, or too much of what it asked takes long.
  [[nodiscard]] bool MustPause() const;
  void Reply(const FrameHeader& header, std::span<const std::byte> body);
  void FinishReply(FrameHeader header, std::size_t begin);
  void Flush();
  // Goes on with a paused peer once it has read half, also if it reads just as it is paused, and
  // with the answers that take long. Ends every turn of a session.
  void FlushAndResume();
  void Malformed(const Error& why);
  // Asks the reactor for what can be used now.
  void UpdateInterest();

  Reactor& reactor_;
  UniqueFd fd_;
  PeerInfo peer_;
  ServerShared& shared_;
  SessionOrder& order_;
  std::list<Session*>::iterator place_;
  std::function<void(Session&)> on_closed_;
  WatchId watch_ = WatchId::kNone;
  TimerId hello_timer_ = TimerId::kNone;
  std::uint32_t interest_ = 0;
  ByteBuffer in_;
  ByteBuffer out_;
  std::size_t missing_bytes_ = 0;  // Of the frame that has begun to arrive.
  bool greeted_ = false;
  bool paused_ = false;             // See MustPause().
  std::optional<RpcClose> ending_;  // Close for this once everything is sent.
  struct LaterAnswer {
    FrameHeader request;
    std::unique_ptr<RpcStep> step;
  };
  std::list<LaterAnswer> later_;  // In the order in which they were asked for.
  TimerId step_timer_ = TimerId::kNone;
};

}  // namespace mooncake::rpc
