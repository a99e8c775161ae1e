// The wire to the master: turns an operation's calls into RPCs and their answers back.
//
// Thread-safety: MasterLink: any thread. A CallContext serves one call at a time.
// Ownership:     borrows the reactor, which runs and outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-common/src/net/rpc/client.h"
#include "mooncake-store/src/client/operation.h"
#include "mooncake-store/src/protocol/codec.h"

namespace mooncake::store {

// Memory that a thread's calls reuse.
struct CallContext {
  Codec codec;
  rpc::RpcReply reply;
};

class MasterLink {
 public:
  // `address` is "host:port". Resolves the host and dials nothing yet.
  //
  // Errors: kInvalidArgument, kDns.
  [[nodiscard]] static Result<std::unique_ptr<MasterLink>> Create(Reactor& reactor,
                                                                  const std::string& address);

  [[nodiscard]] const std::string& address() const { return address_; }

  // Asks and waits on the calling thread; fills the call's reply.
  //
  // Errors: those of RpcClient::Call, and kMalformed for an answer that does not parse.
  [[nodiscard]] Result<void> Call(const MasterCall& call, Instant deadline, CallContext& context);

  // Asks and goes on; `callback` is called once on the reactor's thread with the answer's bytes,
  // for Take().
  rpc::RpcClient::Started Start(const MasterCall& call, Instant deadline, CallContext& context,
                                rpc::RpcClient::Callback callback);
  // Fills the call's reply from the bytes of its answer.
  [[nodiscard]] static Result<void> Take(const MasterCall& call, std::span<const std::byte> body,
                                         CallContext& context);

  // The master's version text; an error names the address.
  [[nodiscard]] Result<std::string> ServiceReady(Instant deadline);

  // Ends all calls with kCancelled.
  void Stop() { client_->Stop(); }

 private:
  MasterLink(std::string address, std::unique_ptr<rpc::RpcClient> client)
      : address_(std::move(address)), client_(std::move(client)) {}

  const std::string address_;
  const std::unique_ptr<rpc::RpcClient> client_;
};

}  // namespace mooncake::store
