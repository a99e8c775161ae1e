// Transfers between processes of one host: by memcpy where the peer's memory is shared, else by
// process_vm_readv/writev. Found by itself from the peer's descriptor; no configuration.
//
// Thread-safety: as in transport.h.
// Lifetime:      outlives its endpoints. Owns at most one thread, from the first Release() with
//                work pending on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/transports/local/copy_helper.h"
#include "mooncake-transfer-engine/src/transports/local/host_identity.h"
#include "mooncake-transfer-engine/src/transports/local/local_channel.h"
#include "mooncake-transfer-engine/src/transports/local/presence.h"
#include "mooncake-transfer-engine/src/transports/transport.h"

namespace mooncake::transfer {

struct LocalTransportOptions {
  // A post of up to this many bytes ends within Post().
  std::uint64_t inline_bytes = std::uint64_t{1} << 20;
  // What a thread copies between two looks at its deadline, and the unit of sharing with others.
  std::uint64_t chunk_bytes = std::uint64_t{512} << 10;
  bool use_shared_memory = true;  // Map the peer's memfd-backed buffers.
  std::function<Result<HostIdentity>()> identity = ReadHostIdentity;
  // Runs a function on a thread that lives as long as this process serves. That thread then vouches
  // for the process (presence.h); without one, peers ask the kernel at each transfer.
  std::function<void(std::function<void()>)> on_lasting_thread;
};

class LocalTransport final : public Transport {
 public:
  // `regions` is what this process has registered; it outlives the transport.
  explicit LocalTransport(RegionTable& regions, LocalTransportOptions options = {});
  ~LocalTransport() override;

  [[nodiscard]] TransportTraits Describe() const override;
  // No error where this process cannot be reached so, or reach others: /proc does not tell who we
  // are, or no nonce can be drawn or shared. Then it says why, announces nothing and connects to
  // nobody.
  [[nodiscard]] Result<void> Start() override;
  // Takes the nonce away, so that no peer copies from or to this process any more.
  void Stop() override;
  // Fills `extension` (made if absent): host_id, pid_namespace, pid, the nonce's fields and, if it
  // is still 0, incarnation.
  void Announce(SegmentDescriptor& descriptor) const override;
  [[nodiscard]] Result<std::unique_ptr<Endpoint>> Connect(
      std::shared_ptr<const SegmentDescriptor> peer) override;

  // Draws another nonce: whoever holds a descriptor announced before gets kUnavailable at its next
  // copy and has to fetch the present one. To be called after a region was removed, before its
  // memory is given back, for a peer copies without asking this process.
  [[nodiscard]] Result<void> RevokeAnnounced();

 private:
  // Errors: kIo, kUnavailable, kExhausted; the process cannot take part.
  [[nodiscard]] Result<void> TakePart();

  RegionTable& regions_;
  const LocalTransportOptions options_;
  HostIdentity identity_;  // Set by Start().
  std::uint64_t incarnation_ = 0;
  // Its nonce is read by peers, at any time; zero while this process does not serve.
  std::shared_ptr<Presence> presence_;  // Set by Start(); null where we cannot take part.
  CopyHelper helper_;
  Mutex mutex_;
  bool running_ MC_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<LocalChannel>> channels_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
