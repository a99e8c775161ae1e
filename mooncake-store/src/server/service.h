// Answers the store's RPCs with a Master: decodes, asks, counts, encodes. No policy.
//
// Thread-safety: RegisterWith() before the RPC server starts; its handlers then run on all of the
//                server's threads at once. Each thread has its own codec and messages, which grow
//                to what passes through them and then allocate no more.
// Ownership:     borrows all three, which must outlive the RPC server's threads.
// Untrusted:     bodies come from anybody who reaches the port. What does not decode is answered in
//                words and counted.
// Blocking:      nothing for long. Sweeps over all objects (by pattern, remove all) go in steps;
//                all others are served between them.
#pragma once

#include <span>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/net/rpc/server.h"
#include "mooncake-store/src/master/master.h"
#include "mooncake-store/src/server/metrics.h"

namespace mooncake::store {

class MasterService {
 public:
  MasterService(Master& master, MasterMetrics& metrics, const Clock& clock)
      : master_(master), metrics_(metrics), clock_(clock) {}

  // All methods of messages.h.
  void RegisterWith(rpc::RpcServer& server);

 private:
  template <typename Request, typename Reply>
  void Add(rpc::RpcServer& server, Method method);
  template <typename Request>
  void AddSweep(rpc::RpcServer& server, Method method);
  // One step of a sweep for `client`; true when it is done, and the reply whole.
  [[nodiscard]] bool Step(ObjectSweep& sweep, const Uuid& client, GetReplicasByRegexReply& reply);
  [[nodiscard]] bool Step(ObjectSweep& sweep, const Uuid& client, RemoveManyReply& reply);
  static void AddReady(rpc::RpcServer& server);

  // Decodes into this thread's message and hands it to `answer`, or refuses it in words.
  template <typename Request, typename Answer>
  void WithRequest(Method method, std::span<const std::byte> body, rpc::ReplyWriter& writer,
                   const rpc::PeerInfo& peer, Answer answer);

  Master& master_;
  MasterMetrics& metrics_;
  const Clock& clock_;
};

// "BatchPutStart" and so on, for messages to people.
[[nodiscard]] std::string_view MethodName(Method method);

}  // namespace mooncake::store
