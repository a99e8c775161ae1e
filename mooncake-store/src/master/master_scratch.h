// What one request needs while it runs, reused from request to request.
//
// Internal to the master's sources.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mooncake-store/src/master/key_hash.h"
#include "mooncake-store/src/master/master.h"

namespace mooncake::store {

struct Master::Scratch {
  std::shared_ptr<const SegmentView> view;
  std::vector<std::uint64_t> hashes;     // A key.
  std::vector<std::uint32_t> order;      // Indices of keys, by shard.
  std::vector<std::uint32_t> shard_end;  // Of each shard's part of `order`.
  std::vector<std::uint8_t> readable;    // With what is hidden taken out.
  std::vector<ChainKey> keys;            // A key: its hash, and its slot if it has one.
  std::vector<ChainKey> parents;
  std::vector<ChainKey> ready;
  std::vector<PlacedExtent> placed;
  std::vector<EvictionHub::Put> puts;  // A key; only those with a slot count.
  std::vector<Placement> placements;
  std::vector<std::uint32_t> retry;  // Keys that room has to be made for.
  std::vector<GroupNumber> groups;
  std::vector<Slot> slots;
  std::vector<std::string> names;
};

// A scratch for the duration of a request.
class Master::ScratchLease {
 public:
  explicit ScratchLease(Master& master) : master_(master) {
    const MutexLock lock(master.scratch_mutex_);
    if (!master.scratches_.empty()) {
      scratch_ = std::move(master.scratches_.back());
      master.scratches_.pop_back();
    } else {
      scratch_ = std::make_unique<Scratch>();
    }
  }
  ~ScratchLease() {
    const MutexLock lock(master_.scratch_mutex_);
    master_.scratches_.push_back(std::move(scratch_));
  }
  ScratchLease(const ScratchLease&) = delete;
  ScratchLease& operator=(const ScratchLease&) = delete;

  Scratch& operator*() { return *scratch_; }

 private:
  Master& master_;
  std::unique_ptr<Scratch> scratch_;
};

// Begins an answer about keys. False when they are too many, or `matching` says that something else
// does not come in their number; the answer then says so.
template <typename Request, typename Reply>
[[nodiscard]] bool BeginReply(const Request& request, Reply& reply, bool matching = true) {
  reply.Clear();
  const bool accepted = matching && request.keys.size() <= kMaxKeysPerBatch;
  reply.code = accepted ? StoreCode::kOk : StoreCode::kInvalidParams;
  return accepted;
}

inline constexpr std::uint32_t kDefaultTenant = 0;  // Tenants are off: whatever a caller names.

template <typename Request>
void Master::Group(const Request& request, Scratch& scratch) const {
  const std::size_t count = request.keys.size();
  scratch.hashes.resize(count);
  scratch.order.resize(count);
  scratch.keys.resize(count);
  scratch.shard_end.assign(options_.shard_count, 0);
  for (std::size_t index = 0; index < count; ++index) {
    scratch.hashes[index] = HashKey(kDefaultTenant, request.keys[index]);
    scratch.keys[index] = {scratch.hashes[index], kNoSlot};
    ++scratch.shard_end[scratch.hashes[index] >> shard_shift_];
  }
  std::uint32_t begin = 0;
  for (std::uint32_t& end : scratch.shard_end) {
    const std::uint32_t size = end;
    end = begin;
    begin += size;
  }
  for (std::size_t index = 0; index < count; ++index) {
    scratch.order[scratch.shard_end[scratch.hashes[index] >> shard_shift_]++] =
        static_cast<std::uint32_t>(index);
  }
}

template <typename Visit>
void Master::VisitShards(Scratch& scratch, Visit visit) {
  std::uint32_t begin = 0;
  for (std::uint32_t number = 0; number < options_.shard_count; ++number) {
    const std::uint32_t end = scratch.shard_end[number];
    if (begin == end) {
      continue;
    }
    const std::span<const std::uint32_t> indices =
        std::span(scratch.order).subspan(begin, end - begin);
    begin = end;
    Shard& shard = *shards_[number];
    const MutexLock lock(shard.mutex());
    if (indices.size() > 1) {
      for (const std::uint32_t index : indices) {
        shard.Prefetch(scratch.hashes[index]);
      }
      for (const std::uint32_t index : indices) {
        shard.PrefetchPlace(scratch.hashes[index]);
      }
      for (const std::uint32_t index : indices) {
        shard.PrefetchRecord(scratch.hashes[index]);
      }
    }
    visit(shard, indices);
    shard.Flush();
  }
}

}  // namespace mooncake::store
