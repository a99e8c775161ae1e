// A store as Python sees it: integer codes, lists in the order of the keys, and calls that are
// errors instead of crashes before setup() and after close().
//
// Thread-safety: any thread. close() ends the calls under way, and waits until they have left. The
// interpreter lock is released by the bindings before anything here is called.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/concurrency/per_process.h"
#include "mooncake-store/include/mooncake/store/client.h"

namespace mooncake::integration {

// Memory of an object that was got: in the store's local buffer if it fitted, else its own. It is
// the object's until the end of this buffer, also when the store is closed before.
class ObjectBuffer {
 public:
  ObjectBuffer(std::shared_ptr<store::LocalBuffer> local, std::span<std::byte> range)
      : local_(std::move(local)), range_(range) {}
  explicit ObjectBuffer(std::size_t size) : own_(size), range_(own_) {}
  ~ObjectBuffer() {
    if (local_) {
      local_->Release(range_);
    }
  }
  ObjectBuffer(const ObjectBuffer&) = delete;
  ObjectBuffer& operator=(const ObjectBuffer&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return range_; }

 private:
  const std::shared_ptr<store::LocalBuffer> local_;
  std::vector<std::byte> own_;
  const std::span<std::byte> range_;
};

// One entry of get_into_ranges(): parts of one object into one buffer.
struct RangesRequest {
  std::uint64_t buffer = 0;
  std::string_view key;
  std::vector<std::uint64_t> destinations;
  std::vector<std::uint64_t> sources;
  std::vector<std::uint64_t> sizes;
  std::vector<std::int64_t> results;  // One a destination, filled in.
};

class PyStore : public std::enable_shared_from_this<PyStore> {
 public:
  // `destroy` deletes the store, on whichever thread lets go of it last.
  [[nodiscard]] static std::shared_ptr<PyStore> Create(void (*destroy)(PyStore*));
  ~PyStore() { Close(); }
  PyStore(const PyStore&) = delete;
  PyStore& operator=(const PyStore&) = delete;

  // A second call closes first.
  int Setup(const store::ClientSettings& settings);
  int Close();
  // Whether calls have a client to run on; else the failure is remembered as theirs.
  [[nodiscard]] bool IsSetUp() const;
  [[nodiscard]] std::string Hostname() const;
  [[nodiscard]] int HealthCheck() const;

  // ---- Copying ----
  // One code a key; for one key a vector of one.
  std::vector<int> Put(std::span<const store::PutItem> items, const store::ReplicateConfig& config,
                       bool upsert);
  // Bytes got, or a negative code a key; `provide` gives memory.
  std::vector<std::int64_t> Get(std::span<const std::string_view> keys,
                                store::DestinationProvider& provide);
  std::vector<std::unique_ptr<ObjectBuffer>> GetBuffers(std::span<const std::string_view> keys);

  // ---- Zero copy: all memory must be registered ----
  std::vector<int> PutFrom(std::span<const store::PutItem> items,
                           const store::ReplicateConfig& config, bool upsert);
  std::vector<std::int64_t> GetInto(std::span<const std::string_view> keys,
                                    std::span<const std::vector<store::Fragment>> fragments);
  void GetRanges(std::span<RangesRequest> requests);
  int RegisterBuffer(std::uint64_t address, std::uint64_t length);
  int UnregisterBuffer(std::uint64_t address);

  // ---- Keys ----
  std::vector<int> Exist(std::span<const std::string_view> keys);
  std::vector<int> Remove(std::span<const std::string_view> keys, bool force);
  std::int64_t RemoveByRegex(std::string_view pattern, bool force);
  std::int64_t RemoveAll(bool force);
  std::int64_t Size(std::string_view key);
  std::vector<std::vector<store::ReplicaInfo>> Replicas(std::span<const std::string_view> keys);
  std::vector<std::string> ClearReplicas(std::span<const std::string_view> keys,
                                         std::string_view segment);

  // ---- Segments ----
  std::expected<Uuid, int> AllocateAndMount(std::uint64_t length);
  int Unmount(std::string_view segment_id, std::uint64_t grace_ms);

 private:
  PyStore() = default;

  // Calls `work(client)`, or returns `otherwise` when there is none.
  template <typename Work, typename Otherwise>
  auto With(Work work, Otherwise otherwise) const
      -> decltype(work(std::declval<const std::shared_ptr<store::Client>&>()));

  struct Running {
    std::shared_ptr<store::Client> client;  // Shared by the calls under way.
    std::shared_ptr<Event> gone;            // Notified at the client's end.
  };
  mutable PerProcess<Running> running_;  // A forked process leaves its parent's alone.
};

}  // namespace mooncake::integration
