// A whole master: the state machine with its RPC server, its admin HTTP server, the passing of
// time, and, if asked for, the engine's metadata over HTTP.
//
// Thread-safety: Start() and Stop() from the owner's thread; the rest from any after Start().
// Threads:       options.rpc_threads reactors, one ticker, one for each HTTP server.
#pragma once

#include <memory>
#include <string>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-store/src/server/server_options.h"

namespace mooncake::store {

class MasterServer {
 public:
  explicit MasterServer(ServerOptions options, const Clock& clock = SteadyClock::Get());
  ~MasterServer();  // Stops.
  MasterServer(const MasterServer&) = delete;
  MasterServer& operator=(const MasterServer&) = delete;

  // Listens and serves. The admin server comes last: when it answers, all is ready. At most once.
  //
  // Errors: those of listening, naming what was to be served, the flag that moves it, and the
  // address; kNotFound for a network interface that is not there. What had begun is stopped then.
  [[nodiscard]] Result<void> Start();

  // Ends what is under way within about a second. May be called twice.
  void Stop();

  // The ports that are listened on; 0 before Start(), and metadata_port() also when not served.
  [[nodiscard]] std::uint16_t rpc_port() const;
  [[nodiscard]] std::uint16_t admin_port() const;
  [[nodiscard]] std::uint16_t metadata_port() const;

 private:
  struct Parts;

  [[nodiscard]] Result<void> StartParts();

  ServerOptions options_;
  const Clock& clock_;
  std::unique_ptr<Parts> parts_;  // From Start() on.
};

}  // namespace mooncake::store
