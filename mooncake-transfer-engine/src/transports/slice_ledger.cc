#include "mooncake-transfer-engine/src/transports/slice_ledger.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mooncake-transfer-engine/src/transports/slice_report.h"

namespace mooncake::transfer {
namespace {

// The ledgers whose sinks this thread is telling, outermost first.
thread_local std::vector<const SliceLedger*> reporting_here;

// What one event has failed is told at once: it is one failure of the path, not thousands.
void ReportAlike(std::span<const EndedSlices::Failed> failed) {
  std::vector<Slice*> alike;
  while (!failed.empty()) {
    const Error& why = failed.front().why;
    alike.clear();
    for (const EndedSlices::Failed& one : failed) {
      if (one.why.code != why.code || one.why.message != why.message) {
        break;
      }
      alike.push_back(one.slice);
    }
    ReportFailed(alike, why);
    failed = failed.subspan(alike.size());
  }
}

}  // namespace

// Counts this thread among those that tell sinks; the caller has raised `reporting_` in the same
// locked step in which the slices left the ledger.
class SliceLedger::ReportScope {
 public:
  explicit ReportScope(SliceLedger& ledger) : ledger_(ledger) { reporting_here.push_back(&ledger); }
  ~ReportScope() {
    reporting_here.pop_back();
    const MutexLock lock(ledger_.mutex_);
    --ledger_.reporting_;
    ledger_.Settle();
  }
  ReportScope(const ReportScope&) = delete;
  ReportScope& operator=(const ReportScope&) = delete;

 private:
  SliceLedger& ledger_;
};

SliceLedger::SliceLedger(const Limits& limits) : limits_(limits), queue_(limits.queue) {}

void SliceLedger::Settle() {
  has_unclaimed_.store(aborting_ == 0 && queue_.HasUnclaimed(), std::memory_order_release);
  has_ended_.store(!ended_.done.empty() || !ended_.failed.empty(), std::memory_order_release);
  if (aborting_ > 0) {
    changed_.NotifyAll();
  }
}

std::size_t SliceLedger::Push(std::span<Slice* const> slices) {
  const MutexLock lock(mutex_);
  if (aborting_ > 0) {
    return 0;
  }
  std::uint64_t bytes = queue_.unclaimed_bytes();
  std::size_t count = 0;
  while (count < slices.size() && bytes < limits_.max_unclaimed_bytes) {
    bytes += slices[count++]->length_bytes;
  }
  queue_.Push(slices.first(count));
  Settle();
  return count;
}

bool SliceLedger::BeginNow() {
  const MutexLock lock(mutex_);
  if (aborting_ > 0) {
    return false;
  }
  ++moving_now_;
  return true;
}

void SliceLedger::EndNow(std::span<Slice* const> slices, std::span<const PieceFailure> failures) {
  {
    const MutexLock lock(mutex_);
    --moving_now_;
    ++reporting_;
  }
  const ReportScope scope(*this);
  std::size_t begin = 0;
  for (const PieceFailure& failure : failures) {
    ReportDone(slices.subspan(begin, failure.index - begin));
    ReportFailed(slices.subspan(failure.index, 1), failure.why);
    begin = failure.index + 1;
  }
  ReportDone(slices.subspan(begin));
}

void SliceLedger::Take(Claim& claim) {
  const MutexLock lock(mutex_);
  if (aborting_ > 0) {
    return;
  }
  queue_.Take(claim);
  Settle();
}

void SliceLedger::Finish(const Claim& claim, std::span<const PieceFailure> failures) {
  const MutexLock lock(mutex_);
  queue_.Finish(claim, failures, ended_);
  Settle();
}

void SliceLedger::Return(const Claim& claim, std::span<const PieceFailure> failures) {
  const MutexLock lock(mutex_);
  queue_.Return(claim, failures, ended_);
  Settle();
}

void SliceLedger::FailUnclaimed(const Error& why) {
  const MutexLock lock(mutex_);
  queue_.Clear(why, ended_);
  Settle();
}

bool SliceLedger::Report() {
  if (!has_ended_.load(std::memory_order_acquire)) {
    return false;
  }
  EndedSlices ended;
  {
    const MutexLock lock(mutex_);
    std::swap(ended, ended_);
    ++reporting_;
    Settle();
  }
  const ReportScope scope(*this);
  ReportDone(ended.done);
  ReportAlike(ended.failed);
  return !ended.done.empty() || !ended.failed.empty();
}

std::uint64_t SliceLedger::unclaimed_bytes() const {
  const MutexLock lock(mutex_);
  return queue_.unclaimed_bytes();
}

bool SliceLedger::IsQuiet() const {
  return moving_now_ == 0 && queue_.claims() == 0 && ended_.done.empty() && ended_.failed.empty() &&
         reporting_ == reporting_and_aborting_;
}

void SliceLedger::Abort(const Error& why, const std::function<void()>& stop) {
  const auto own_reports = static_cast<std::size_t>(std::ranges::count(reporting_here, this));
  {
    const MutexLock lock(mutex_);
    ++aborting_;
    reporting_and_aborting_ += own_reports;
    queue_.Clear(why, ended_);
    Settle();  // Another Abort() may wait for just this.
  }
  stop();
  for (;;) {
    FailUnclaimed(why);  // What was given back meanwhile.
    Report();
    const MutexLock lock(mutex_);
    if (IsQuiet() && !queue_.HasUnclaimed()) {
      reporting_and_aborting_ -= own_reports;
      --aborting_;
      return;
    }
    if (ended_.done.empty() && ended_.failed.empty() && !queue_.HasUnclaimed()) {
      changed_.Wait(mutex_);
    }
  }
}

}  // namespace mooncake::transfer
