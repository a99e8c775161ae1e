// What a living client is made of, and the order in which it comes up and goes down.
//
// Thread-safety: Open() before all else; Close() from any thread, also while others are in Run(),
//                Mount() or Unmount(); the destructor after those.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/uuid.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/net/reactor.h"
#include "mooncake-store/include/mooncake/store/client.h"
#include "mooncake-store/src/client/client_core.h"
#include "mooncake-store/src/client/driver.h"
#include "mooncake-store/src/client/heartbeat.h"
#include "mooncake-store/src/client/leaving_segments.h"
#include "mooncake-store/src/client/local_buffer.h"
#include "mooncake-store/src/client/master_link.h"
#include "mooncake-store/src/client/store_name.h"

namespace mooncake::store {

class ClientParts {
 public:
  ClientParts(ClientOptions options, StoreName name);
  ~ClientParts();
  ClientParts(const ClientParts&) = delete;
  ClientParts& operator=(const ClientParts&) = delete;

  // Reaches the master, starts the engine, allocates and mounts, begins the heartbeat. After a
  // failure only Close().
  [[nodiscard]] std::expected<void, StoreError> Open(const ClientSettings& settings);
  // Ends what is under way and withdraws from the master and from peers, within kClosePatience.
  // What calls under way may still touch is freed by the destructor. May be called twice.
  void Close() MC_EXCLUDES(mutex_);

  [[nodiscard]] std::expected<Uuid, StoreError> Mount(std::uint64_t length_bytes)
      MC_EXCLUDES(mutex_);
  [[nodiscard]] StoreCode Unmount(const Uuid& segment, std::uint64_t grace_ms, Duration patience)
      MC_EXCLUDES(mutex_);

  [[nodiscard]] const StoreName& name() const { return name_; }
  [[nodiscard]] ClientCore& core() { return core_; }
  [[nodiscard]] transfer::Engine& engine() { return *engine_; }
  // Whether the user of an engine that was handed in has registered the range with it.
  [[nodiscard]] bool UserRegistered(const void* address, std::uint64_t length_bytes) const {
    return !own_engine_ && engine_->HoldsRegistered(address, length_bytes);
  }
  // Null when there is none.
  [[nodiscard]] const std::shared_ptr<LocalBuffer>& local_buffer() const { return local_buffer_; }
  void Run(Operation& operation) { driver_->Run(operation); }

 private:
  struct OwnedSegment {
    Uuid id;
    void* memory = nullptr;
  };

  [[nodiscard]] std::expected<void, StoreError> Connect(const std::string& master_address,
                                                        Duration patience);
  [[nodiscard]] std::expected<void, StoreError> StartEngine(const ClientSettings& settings);
  // Takes the segment off the list and frees its memory. False when it is not on it.
  bool Free(const Uuid& segment) MC_EXCLUDES(mutex_);
  [[nodiscard]] bool Owns(const Uuid& segment) MC_EXCLUDES(mutex_);
  // The grace period of an unmounted segment is over. False when the master does not answer.
  [[nodiscard]] bool LetGo(const Uuid& segment) MC_EXCLUDES(mutex_);

  StoreName name_;
  ClientCore core_;
  Reactor reactor_;
  std::unique_ptr<MasterLink> link_;
  std::unique_ptr<MasterLink> last_link_;  // For Close(), which stops the other one first.
  std::shared_ptr<transfer::Engine> engine_;
  bool own_engine_ = false;  // Else it was handed in, and goes on when the client ends.
  std::optional<Driver> driver_;
  std::optional<Heartbeat> heartbeat_;

  std::shared_ptr<LocalBuffer> local_buffer_;
  void* local_memory_ = nullptr;
  Mutex mutex_;
  bool closed_ MC_GUARDED_BY(mutex_) = false;
  std::vector<OwnedSegment> segments_ MC_GUARDED_BY(mutex_);
  LeavingSegments leaving_;
};

}  // namespace mooncake::store
