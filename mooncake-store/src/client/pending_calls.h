// Calls to the master that travel in the background for one operation, and where their answers
// arrive.
//
// Thread-safety: the operation's thread has it; Wake() from any thread.
// Ownership:     borrows the link. Calls are forgotten, not cancelled, at its end: what a late
//                answer needs lives until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-store/src/client/master_link.h"
#include "mooncake-store/src/client/operation.h"

namespace mooncake::store {

class PendingCalls {
 public:
  explicit PendingCalls(MasterLink& master) : master_(master) {}

  [[nodiscard]] bool empty() const { return calls_.empty(); }

  // Sends what a kCall asks for.
  void Send(const Action& action, CallContext& context);
  // Drops the call; its answer is not reported any more.
  void Forget(std::uint32_t tag);

  // Until an answer has come, Wake() was called, or `until` has passed.
  void Wait(Instant until, Duration spin = kDefaultSpin);
  // Lets a thread that is in Wait(), or comes there next, go on.
  void Wake() { mailbox_->arrived.Notify(); }
  // Reports the answers that have come since the last time.
  void Report(Operation& operation, CallContext& context);

 private:
  struct Call {
    std::uint32_t tag = 0;
    std::uint32_t number = 0;  // Of calls with one tag, which: a forgotten one may be answered yet.
    MasterCall call;
    rpc::RpcClient::Started started;
  };
  struct Answer {
    std::uint32_t number = 0;
    Result<void> outcome;
    std::vector<std::byte> body;
  };
  // Outlives this object when an answer is late.
  struct Mailbox {
    Event arrived;
    Mutex mutex;
    std::vector<Answer> answers MC_GUARDED_BY(mutex);
  };

  MasterLink& master_;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::uint32_t next_number_ = 0;
  std::vector<Call> calls_;
};

}  // namespace mooncake::store
