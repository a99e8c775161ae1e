// The one seam that every wire goes through: local, tcp, the fake, later rdma, file, fabric and
// accelerators.
//
// A Transport belongs to one engine; an Endpoint is its way to one incarnation of one peer. Slices
// finish through their sink, on the thread that drives: the caller that waits lends its own thread
// (Drive), and what nobody drives the transport's reactor finishes (after Release). So a short
// transfer needs no hand-off, and a long one no caller.
//
// Thread-safety: all methods may be called from any thread at once; none blocks on the peer.
// All implementations pass transport_conformance_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/metadata/segment_descriptor.h"
#include "mooncake-transfer-engine/src/transports/slice.h"

namespace mooncake::transfer {

// What path choice needs to know before anything was measured.
struct TransportTraits {
  std::string_view name;                  // "local", "tcp": what transport_hint and protocol say.
  std::uint32_t rank = 0;                 // Lower is preferred while nothing is known.
  bool needs_local_registration = false;  // false: the kernel checks the local address itself.
  std::uint64_t max_slice_bytes = 0;      // 0 = any length.
};

// The way to one peer. Destroying it is Abort() first.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  // Takes slices from the front while there is room and returns how many; the rest stay the
  // caller's (try again after Drive). Each slice taken ends exactly once at its sink, possibly
  // before Post returns.
  [[nodiscard]] virtual std::size_t Post(std::span<Slice* const> slices) = 0;

  // Makes what progress is possible now on this thread, unless another thread is already at it.
  // Returns whether anything moved, so that a caller that spins knows when to stop.
  virtual bool Drive() = 0;

  // Grows whenever bytes of a slice under way move, in either direction, and stands still when the
  // peer does: what tells a slow transfer from a stalled one. Ends of slices need not be counted.
  [[nodiscard]] virtual std::uint64_t MovedBytes() const = 0;

  // Whether the peer's host has not answered for seconds although it was asked: the way there is
  // broken, and it does not pay to wait for as long as for a peer that is stopped, whose kernel
  // answers. To be asked again and again while work stands still, and only then.
  [[nodiscard]] virtual bool CutOff() { return false; }

  // The caller stops driving (it sleeps or leaves): the reactor takes over whatever is pending.
  virtual void Release() = 0;

  // Ends every slice taken with `why`, closes what carried them, and does not touch their memory
  // after it returns. The next Post starts afresh (it may reconnect).
  virtual void Abort(const Error& why) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  [[nodiscard]] virtual TransportTraits Describe() const = 0;

  // Begins listening; fills in what peers must know by Announce(). Stop() refuses new work, ends
  // what is in flight and may be called twice. No endpoint may be used after Stop().
  [[nodiscard]] virtual Result<void> Start() = 0;
  virtual void Stop() = 0;

  // Adds to `descriptor` what a peer needs to reach this process (port, extension fields).
  virtual void Announce(SegmentDescriptor& descriptor) const = 0;

  // A way to `peer`, or kUnavailable when this transport cannot reach it (other host, other
  // protocol). Dials nothing yet.
  [[nodiscard]] virtual Result<std::unique_ptr<Endpoint>> Connect(
      std::shared_ptr<const SegmentDescriptor> peer) = 0;
};

}  // namespace mooncake::transfer
