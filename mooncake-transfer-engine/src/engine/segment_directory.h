// Where the engine learns about other segments and tells about its own. The part of metadata that
// the engine needs; adapters stand on a backend or on the handshake between peers.
//
// Thread-safety: all methods, from any thread at once.
// Blocking:      Fetch, Publish, Withdraw, Remove, SendNotify and Probe wait for the network, with
//                a deadline of their own. Offer does not block.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-transfer-engine/src/metadata/metadata.h"
#include "mooncake-transfer-engine/src/metadata/segment_descriptor.h"

namespace mooncake::transfer {

class SegmentDirectory {
 public:
  virtual ~SegmentDirectory() = default;

  // The descriptor as it is now, never from a cache.
  [[nodiscard]] virtual Result<std::shared_ptr<const SegmentDescriptor>> Fetch(
      const std::string& name) = 0;

  // For the end of the engine: what waits for a peer ends soon, with kCancelled, and later
  // questions to peers at once.
  virtual void Interrupt() = 0;

  // What to answer from now on to peers that ask this process itself.
  virtual void Offer(std::shared_ptr<const SegmentDescriptor> own) = 0;
  // Writes the descriptor where peers look for it; nothing to do where they ask us.
  [[nodiscard]] virtual Result<void> Publish(const SegmentDescriptor& own) = 0;
  [[nodiscard]] virtual Result<void> Withdraw(const std::string& name) = 0;
  // Deletes what is written there about a segment of somebody else.
  [[nodiscard]] virtual Result<void> Remove(const std::string& name) = 0;

  [[nodiscard]] virtual Result<void> SendNotify(const std::string& name,
                                                const Notification& notify) = 0;
  // What peers sent to this process since the last call, oldest first.
  [[nodiscard]] virtual std::vector<Notification> TakeNotifies() = 0;
  [[nodiscard]] virtual Result<void> Probe(const std::string& name) = 0;
};

}  // namespace mooncake::transfer
