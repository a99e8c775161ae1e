#include "mooncake-transfer-engine/src/engine/batch_table.h"

#include <fmt/format.h>

namespace mooncake::transfer {

namespace {

constexpr std::uint64_t kIndexMask = 0xffff;
static_assert(StableArray<Batch>::kMaxSize == kIndexMask + 1);

std::size_t ThisThreadsNumber() {
  static std::atomic<std::size_t> last = 0;
  thread_local const std::size_t number = last.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

Result<Batch*> BatchTable::Take() {
  const MutexLock lock(mutex_);
  if (!free_.empty()) {
    Batch* batch = free_.back();
    free_.pop_back();
    return batch;
  }
  Batch* batch = batches_.Append(context_, static_cast<std::uint32_t>(batches_.size()));
  if (batch == nullptr) {
    return Fail(
        ErrorCode::kExhausted,
        fmt::format("allocate a batch: {} are alive; free those that are done", batches_.size()));
  }
  return batch;
}

void BatchTable::Give(Batch* batch) {
  const MutexLock lock(mutex_);
  free_.push_back(batch);
}

Result<BatchId> BatchTable::Allocate(std::size_t capacity) {
  if (capacity == 0) {
    return Fail(ErrorCode::kInvalidArgument, "allocate a batch of capacity 0; give at least 1");
  }
  MC_TRY_ASSIGN(Batch* const batch, Take());
  return batch->Begin(capacity);
}

Batch* BatchTable::Find(BatchId id) const { return batches_.At(id & kIndexMask); }

Result<void> BatchTable::Free(BatchId id) {
  Batch* batch = Find(id);
  if (batch == nullptr) {
    return Fail(ErrorCode::kNotFound, fmt::format("free batch {:#x}: no such batch", id));
  }
  MC_TRY(batch->End(id));
  Give(batch);
  return {};
}

Result<BatchTable::Borrowed> BatchTable::Borrow(std::size_t capacity) {
  Slot& slot = warm_[ThisThreadsNumber() % kSlots];
  Batch* batch = slot.batch.exchange(nullptr, std::memory_order_acquire);
  if (batch == nullptr) {
    MC_TRY_ASSIGN(batch, Take());
  }
  return Borrowed{.batch = batch, .id = batch->Begin(capacity)};
}

void BatchTable::Return(const Borrowed& borrowed) {
  const auto ended = borrowed.batch->End(borrowed.id);
  MC_CHECK(ended.has_value());
  Slot& slot = warm_[ThisThreadsNumber() % kSlots];
  Batch* expected = nullptr;
  if (!slot.batch.compare_exchange_strong(expected, borrowed.batch, std::memory_order_release)) {
    Give(borrowed.batch);
  }
}

}  // namespace mooncake::transfer
