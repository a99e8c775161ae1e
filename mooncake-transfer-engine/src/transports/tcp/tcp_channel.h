// The way to one peer's data port: a ledger of slices, and the few connections that serve it.
//
// One connection is opened when there is something to move, more when much is waiting. They stay
// open; one that ended is opened again when it is needed. An address that cannot be connected to
// gives way to the peer's next one; when none can, and no connection is left, all that waits fails
// at once (kUnavailable).
//
// Thread-safety: all methods, any thread; none blocks. Sinks are told from Post, Drive, Release and
//                Abort on the caller's thread, and on the reactor's outside of any connection's
//                work.
// Lifetime:      shared by its endpoint and functions posted to the reactor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/net/peer_addresses.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-transfer-engine/src/transports/slice_ledger.h"
#include "mooncake-transfer-engine/src/transports/tcp/client_lane.h"

namespace mooncake::transfer {

class TcpChannel : public std::enable_shared_from_this<TcpChannel> {
 public:
  struct Options {
    TcpProtocol protocol;
    std::size_t max_lanes;
    std::uint64_t max_unclaimed_bytes;
    std::uint64_t bytes_per_lane;  // Waiting bytes that call for one more connection.
  };

  // The addresses are known already.
  TcpChannel(Reactor& reactor, std::shared_ptr<PeerAddresses> addresses, const Options& options);

  [[nodiscard]] std::size_t Post(std::span<Slice* const> slices);
  bool Drive();
  [[nodiscard]] std::uint64_t MovedBytes() const { return ledger_.moved_bytes(); }
  [[nodiscard]] bool CutOff();
  void Release();
  void Abort(const Error& why);

 private:
  using Lanes = std::vector<std::shared_ptr<ClientLane>>;

  [[nodiscard]] Lanes OpenLanes() const;
  // Opens what the waiting bytes call for, and forgets what has ended.
  void Tend();
  [[nodiscard]] Result<std::shared_ptr<ClientLane>> OpenLane();
  void OnLaneClosed(const PeerAddresses::Choice& choice, bool failed_to_connect, const Error& why);
  void ReportSoon();
  void TendSoon();

  Reactor& reactor_;
  const std::shared_ptr<PeerAddresses> addresses_;
  const Options options_;
  SliceLedger ledger_;
  std::atomic<std::size_t> connected_lanes_ = 0;
  std::atomic<std::size_t> ended_lanes_ = 0;  // Not yet forgotten.
  mutable Mutex mutex_;
  Lanes lanes_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
