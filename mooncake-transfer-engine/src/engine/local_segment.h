// What this process offers: its registered regions and the descriptor that lists them.
//
// Thread-safety: all methods, from any thread.
// Blocking:      Publish and Withdraw ask the directory; Unregister waits for peers being served.
#pragma once

#include <memory>
#include <span>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/engine/region_table.h"
#include "mooncake-transfer-engine/src/engine/segment_directory.h"
#include "mooncake-transfer-engine/src/engine/segment_table.h"

namespace mooncake::transfer {

class LocalSegment {
 public:
  LocalSegment(SegmentDescriptor identity, RegionTable& regions, SegmentDirectory& directory,
               SegmentTable& segments);

  // Fields that transports have announced; before the first Publish.
  void SetIdentity(SegmentDescriptor identity);

  [[nodiscard]] Result<void> Register(std::span<const Region> regions);
  struct Removal {
    Result<void> outcome;    // The first error.
    bool announced = false;  // Peers may know of what was taken out.
  };
  // Takes all out that are there.
  [[nodiscard]] Removal Unregister(std::span<void* const> addresses, Duration patience);

  // Until peers can see what is registered now. Threads that publish at once share one write.
  [[nodiscard]] Result<void> Publish();
  [[nodiscard]] Result<void> Withdraw();

  [[nodiscard]] std::shared_ptr<const SegmentDescriptor> Descriptor() const;

 private:
  void Rebuild();

  RegionTable& regions_;
  SegmentDirectory& directory_;
  SegmentTable& segments_;
  mutable Mutex mutex_;
  CondVar published_;
  SegmentDescriptor identity_ MC_GUARDED_BY(mutex_);
  std::shared_ptr<const SegmentDescriptor> current_ MC_GUARDED_BY(mutex_);
  std::uint64_t version_ MC_GUARDED_BY(mutex_) = 0;
  std::uint64_t published_version_ MC_GUARDED_BY(mutex_) = 0;
  bool publishing_ MC_GUARDED_BY(mutex_) = false;
};

}  // namespace mooncake::transfer
