// A stock of idle objects that are large and meant to be used again: as many as ever were in use at
// once.
//
// Thread-safety: any thread; one leaf lock inside. A loan is its borrower's.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-store/src/client/client_core.h"

namespace mooncake::store {

template <typename T>
class Stock {
 public:
  class Loan {
   public:
    Loan(Stock& stock, std::unique_ptr<T> item) : stock_(stock), item_(std::move(item)) {}
    ~Loan() { stock_.Return(std::move(item_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    T* operator->() { return item_.get(); }
    T& operator*() { return *item_; }

   private:
    Stock& stock_;
    std::unique_ptr<T> item_;
  };

  explicit Stock(ClientCore& core) : core_(core) {}

  [[nodiscard]] Loan Take() {
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        auto item = std::move(idle_.back());
        idle_.pop_back();
        return Loan(*this, std::move(item));
      }
    }
    return Loan(*this, std::make_unique<T>(core_));
  }

 private:
  void Return(std::unique_ptr<T> item) {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(item));
  }

  ClientCore& core_;
  Mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_ MC_GUARDED_BY(mutex_);
};

}  // namespace mooncake::store
