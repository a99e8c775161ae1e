// A store client: lends memory to the pool, and puts, gets and removes objects.
//
// Thread-safety: all methods but Create() and Close(), from any thread at once. Close() ends what
//                is under way; nothing is called after it.
// Blocking:      calls run on the calling thread and return when their result is known; waiting
//                is bounded by the settings.
// Ownership:     memory that a call is given stays the caller's, untouched after the call.
// Errors:        codes are those of error_code.h; LastError() says in words what the last failure
//                on this thread was.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/mapped_memory.h"
#include "mooncake-common/src/base/uuid.h"
#include "mooncake-store/src/client/get_operation.h"
#include "mooncake-store/src/client/local_buffer.h"
#include "mooncake-store/src/client/put_operation.h"
#include "mooncake-store/src/protocol/error_code.h"
#include "mooncake-transfer-engine/include/mooncake/transfer/engine.h"

namespace mooncake::store {

struct ClientSettings {
  std::string local_hostname;              // "host" or "host:port"; see StoreName.
  std::string metadata_server;             // Of the engine: "P2PHANDSHAKE" or a URL.
  std::uint64_t global_segment_bytes = 0;  // Lent to the pool; 0 = only uses what others lend.
  std::uint64_t local_buffer_bytes = 0;    // For copying calls; 0 = they fail.
  std::string protocol = "tcp";
  std::string devices;
  std::string master_address;  // "host:port"
  std::string tenant;
  Duration master_patience = std::chrono::seconds(10);  // How long set-up waits for a master.
  // Used instead of a new one when not null; it goes on when the client ends. `local_hostname` is
  // then just a name, usually the engine's own, and what its user has registered with the engine
  // counts as registered here.
  std::shared_ptr<transfer::Engine> engine;
};

// A failure in a form that users see.
struct StoreError {
  StoreCode code = StoreCode::kOk;
  std::string text;
};

// The last failure on the calling thread, over all clients; kOk and "" before the first.
[[nodiscard]] const StoreError& LastError();
// Remembers a failure for LastError(), and returns its code.
StoreCode RememberError(StoreCode code, std::string text);

// Where and how objects are placed: the public ReplicateConfig, which owns its texts.
struct ReplicateConfig {
  std::uint32_t replica_num = 1;
  std::uint32_t nof_replica_num = 0;
  std::uint32_t dfs_replica_num = 0;
  SoftPinAction soft_pin_action = SoftPinAction::kPreserve;
  std::optional<std::uint64_t> soft_pin_ttl_ms;
  bool with_hard_pin = false;
  std::vector<std::string> preferred_segments;
  std::vector<std::string> preferred_nof_segments;
  std::string preferred_segment;
  bool prefer_alloc_in_same_node = false;
  std::uint8_t data_type = 0;
  std::optional<std::vector<std::string>> group_ids;

  // As users have always seen it printed.
  [[nodiscard]] std::string ToString() const;
};

// What get_replica_desc tells of one replica: the memory of its first extent, and all of them.
struct ReplicaInfo {
  std::uint64_t size_bytes = 0;
  std::uint64_t address = 0;  // In the owner's process.
  std::string endpoint;
  std::vector<LocatedExtent> extents;
};

enum class Health : std::uint8_t { kHealthy = 0, kNotInitialised = 1, kMasterUnreachable = 2 };

class Client {
 public:
  // Connects to the master (for up to ten seconds while it does not answer), and mounts the
  // segment.
  [[nodiscard]] static std::expected<std::unique_ptr<Client>, StoreError> Create(
      const ClientSettings& settings);
  ~Client();  // Close() first. An engine that was handed in forgets the registered buffers.
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Unmounts and gives everything back, within about a second also without a master. May be called
  // twice.
  void Close();

  // How the master knows this client, as the owner of its segments.
  [[nodiscard]] const Uuid& id() const;
  // "host:port": the name of the segment, whether or not any memory is lent.
  [[nodiscard]] const std::string& hostname() const;
  [[nodiscard]] Health health() const;

  // One code an item; kOk also for a key that existed (LastError() then says kObjectAlreadyExists).
  [[nodiscard]] std::vector<StoreCode> Put(std::span<const PutItem> items,
                                           const ReplicateConfig& config, bool upsert);
  // One result an item.
  [[nodiscard]] std::vector<GetOperation::Result> Get(std::span<const GetItem> items,
                                                      DestinationProvider* provider = nullptr);
  // The same for one object, without a vector.
  [[nodiscard]] GetOperation::Result GetOne(const GetItem& item,
                                            DestinationProvider* provider = nullptr);

  // 1, 0 or a negative code a key.
  [[nodiscard]] std::vector<std::int32_t> Exist(std::span<const std::string_view> keys);
  [[nodiscard]] std::vector<StoreCode> Remove(std::span<const std::string_view> keys, bool force);
  // How many were removed, or a negative code.
  [[nodiscard]] std::int64_t RemoveByRegex(std::string_view pattern, bool force);
  [[nodiscard]] std::int64_t RemoveAll(bool force);
  // The keys that were cleared.
  [[nodiscard]] std::vector<std::string> ClearReplicas(std::span<const std::string_view> keys,
                                                       std::string_view segment_name);
  // Replicas of each key, none for a miss. Grants a lease.
  [[nodiscard]] std::vector<std::vector<ReplicaInfo>> Replicas(
      std::span<const std::string_view> keys);
  // The same of all objects whose key holds a match of an ECMAScript pattern, by key.
  // Errors: kInvalidParams when the pattern is none, kBufferOverflow when one message cannot carry
  // the answer.
  [[nodiscard]] std::expected<std::map<std::string, std::vector<ReplicaInfo>>, StoreError>
  ReplicasByRegex(std::string_view pattern);
  // Where the segments of each client are reached, in order and each host once; none for a client
  // that lends nothing.
  [[nodiscard]] std::expected<std::vector<std::vector<std::string>>, StoreError> HostsOf(
      std::span<const Uuid> clients);
  // Bytes, or a negative code. Grants a lease.
  [[nodiscard]] std::int64_t Size(std::string_view key);

  // Memory that zero-copy calls may use; it stays mapped as it is until it is unregistered. What
  // may only be read can be put from, not got into. kInvalidParams: empty, not mapped, not
  // readable, or overlapping another.
  [[nodiscard]] StoreCode RegisterBuffer(void* address, std::uint64_t length_bytes);
  // kInvalidParams: none begins there.
  [[nodiscard]] StoreCode UnregisterBuffer(void* address);
  // Whether a range lies inside one registered buffer that may be used so, the local buffer, or
  // memory registered with the engine that was handed in.
  [[nodiscard]] bool IsRegistered(const void* address, std::uint64_t length_bytes,
                                  MemoryAccess access) const;

  // Registered memory for copying calls and buffer handles; null when there is none. Ranges of it
  // stay what they are as long as their taker shares it, also beyond Close().
  [[nodiscard]] const std::shared_ptr<LocalBuffer>& local_buffer() const;

  // Lends `length_bytes` more. The new segment's id, or a failure.
  [[nodiscard]] std::expected<Uuid, StoreError> AllocateAndMount(std::uint64_t length_bytes);
  // Takes a segment back: no object is placed there any more, those that are there can be read for
  // `grace_ms` yet, and then its memory is freed.
  [[nodiscard]] StoreCode Unmount(const Uuid& segment, std::uint64_t grace_ms);

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mooncake::store
