// Where an engine learns how to reach its peers, and where peers learn how to reach it: peer to
// peer, or through a central store.
//
// Life: made by MakeMetadata(), then Start(), PublishSegment() after every change of what is
// registered, Stop(). One engine owns one Metadata.
// Thread-safety: all methods from any thread at once, except that Start() comes first and nothing
// after Stop().
// Blocking: the methods that speak to somebody else block until their own deadline: a few seconds
// where nobody answers, a minute and more where a peer was reached and is silent or slow. They
// belong on set-up paths, never on a reactor.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/metadata/segment_descriptor.h"

namespace mooncake::transfer {

// A small message to a peer's application, usually "your data has arrived".
struct Notification {
  std::string name;
  std::string message;

  friend bool operator==(const Notification&, const Notification&) = default;
};

// The descriptor of the local segment as it is now. Called from Start() until Stop() has returned,
// on the reactor's thread and on callers' threads; must not block.
using DescribeLocal = std::function<SegmentDescriptor()>;

class Metadata {
 public:
  virtual ~Metadata() = default;

  // Opens the handshake port, settles the local name and makes the process findable. On an error
  // nothing stays behind, and RpcPort() may already be set.
  //
  // Errors: kAlreadyExists: another living process has the name. kExhausted: no free port in the
  // range. kUnavailable, kTimeout: the central store does not answer.
  [[nodiscard]] virtual Result<void> Start(DescribeLocal describe) = 0;

  // Before Stop(): what waits for a peer ends soon, with kCancelled, and later questions at once.
  virtual void Interrupt() = 0;

  // Takes back what was published, ends the listener; may be called twice.
  virtual void Stop() = 0;

  // The local segment's name as finally chosen, by which peers open it. Empty before Start().
  [[nodiscard]] virtual std::string LocalName() const = 0;

  // The address for `tcp_data_host` of the local descriptor; empty = leave it out, readers then use
  // the host they dialled.
  [[nodiscard]] virtual std::string DataHost() const = 0;

  // The handshake port; 0 before Start() and where there is none.
  [[nodiscard]] virtual std::uint16_t RpcPort() const = 0;

  // Makes `descriptor` what peers get. A no-op where peers ask this process itself.
  [[nodiscard]] virtual Result<void> PublishSegment(const SegmentDescriptor& descriptor) = 0;

  // Asks afresh, caches nothing. `tcp_data_host` of the answer is always filled in when its
  // protocol is tcp. One leading '/' of a name is dropped.
  //
  // Errors: kNotFound: nobody published it. kUnavailable, kTimeout, kDns: nobody answers.
  // kInvalidArgument: the name cannot be dialled. kMalformed: the answer is no descriptor.
  [[nodiscard]] virtual Result<SegmentDescriptor> GetSegment(std::string_view name) = 0;

  // Deletes what is published about a segment, e.g. of a peer known to be gone. A missing one is no
  // error; a no-op without a central store.
  [[nodiscard]] virtual Result<void> RemoveSegment(std::string_view name) = 0;

  // Publishes again whatever the central store has lost (it was restarted). Central stores also
  // notice by themselves within `MetadataOptions::check_interval`.
  [[nodiscard]] virtual Result<void> Republish() = 0;

  // Whether the process behind `name` answers now; the error says why not.
  [[nodiscard]] virtual Result<void> Probe(std::string_view name) = 0;

  // Delivers to the peer's queue. Errors also: kExhausted: the peer's queue is full.
  [[nodiscard]] virtual Result<void> Notify(std::string_view name,
                                            const Notification& notification) = 0;

  // What peers sent since the last call, oldest first.
  [[nodiscard]] virtual std::vector<Notification> TakeNotifies() = 0;
};

}  // namespace mooncake::transfer
