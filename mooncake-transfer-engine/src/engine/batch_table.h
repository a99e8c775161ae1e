// Batch ids and the pool of batches behind them.
//
// Thread-safety: all methods, from any thread. Find and the borrowing of a warm batch take no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-transfer-engine/src/engine/batch.h"
#include "mooncake-transfer-engine/src/engine/stable_array.h"

namespace mooncake::transfer {

class BatchTable {
 public:
  explicit BatchTable(const BatchContext& context) : context_(context) {}

  // Errors: kExhausted when StableArray::kMaxSize batches are alive.
  [[nodiscard]] Result<BatchId> Allocate(std::size_t capacity);
  // The batch whose id this is or was; nullptr for ids that never were. Its methods check the id.
  [[nodiscard]] Batch* Find(BatchId id) const;
  [[nodiscard]] Result<void> Free(BatchId id);

  // For one call on one thread: takes a batch that this thread has likely used before.
  struct Borrowed {
    Batch* batch;
    BatchId id;
  };
  [[nodiscard]] Result<Borrowed> Borrow(std::size_t capacity);
  // All its tasks are terminal.
  void Return(const Borrowed& borrowed);

  // Every batch that was ever made, in use or not.
  template <typename F>
  void ForEach(F&& each) const {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      each(*batches_.At(i));
    }
  }

 private:
  struct alignas(64) Slot {
    std::atomic<Batch*> batch = nullptr;
  };
  static constexpr std::size_t kSlots = 32;

  [[nodiscard]] Result<Batch*> Take();
  void Give(Batch* batch);

  const BatchContext& context_;
  StableArray<Batch> batches_;
  std::array<Slot, kSlots> warm_;
  Mutex mutex_;
  std::vector<Batch*> free_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::transfer
