// The name under which a client's segment is known: "host:port", with a port that stays bound for
// the client's life, by the client or by the engine that it was handed, so that no two living
// processes of a host have the same name.
//
// Thread-safety: a value with one owner.
#pragma once

#include <cstdint>
#include <string>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/net/port_range.h"
#include "mooncake-common/src/net/socket.h"

namespace mooncake::store {

struct StoreName {
  std::string text;  // "127.0.0.1:12345", "[::1]:12345"
  std::string host;  // "127.0.0.1", "::1"
  UniqueFd held;     // The port; empty when an engine holds it.

  // From what the user gave: a port in it is used as it is, otherwise one of `ports` is drawn.
  //
  // Errors: kInvalidArgument (empty, or no host), kAlreadyExists (the port given is taken),
  // kExhausted (all are).
  [[nodiscard]] static Result<StoreName> Claim(const std::string& local_hostname, PortRange ports,
                                               Rng& rng);

  // Of a client on an engine that is there already: a port given stays, as users give the engine's
  // own name, otherwise it is `engine_port`. Nothing is held: the engine holds its port.
  //
  // Errors: kInvalidArgument (empty, or no host).
  [[nodiscard]] static Result<StoreName> OnEngine(const std::string& local_hostname,
                                                  std::uint16_t engine_port);
};

}  // namespace mooncake::store
