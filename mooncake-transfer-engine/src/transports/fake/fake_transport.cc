#include "mooncake-transfer-engine/src/transports/fake/fake_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "mooncake-common/src/concurrency/cond_var.h"
#include "mooncake-common/src/concurrency/mutex.h"
#include "mooncake-common/src/concurrency/thread.h"

namespace mooncake::transfer {

namespace {

void Move(const Slice& slice) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a remote address is one of this process here.
  auto* remote = reinterpret_cast<std::byte*>(slice.remote_address);
  if (slice.opcode == Opcode::kRead) {
    std::memcpy(slice.local, remote, slice.length_bytes);
  } else {
    std::memcpy(remote, slice.local, slice.length_bytes);
  }
}

// Calls `end` for each stretch of slices with one sink.
template <typename F>
void ForEachSink(std::span<Slice* const> slices, F&& end) {
  while (!slices.empty()) {
    SliceSink* const sink = slices.front()->sink;
    const auto other = std::ranges::find_if(slices, [sink](Slice* s) { return s->sink != sink; });
    const auto count = static_cast<std::size_t>(other - slices.begin());
    end(*sink, slices.first(count));
    slices = slices.subspan(count);
  }
}

}  // namespace

// What an endpoint has taken. Shared with the background thread.
class FakeTransport::Lane {
 public:
  Lane(std::uint64_t seed, const FakeOptions& options, std::shared_ptr<Switches> switches,
       std::uint64_t incarnation)
      : options_(options),
        switches_(std::move(switches)),
        incarnation_(incarnation),
        random_(seed) {}

  std::size_t Post(std::span<Slice* const> slices) {
    if (options_.instant && !Troubled()) {
      for (Slice* slice : slices) {
        if (options_.copies) {
          Move(*slice);
        }
      }
      switches_->posted.fetch_add(slices.size(), std::memory_order_relaxed);
      ForEachSink(slices, [](SliceSink& sink, auto part) { sink.OnDone(part); });
      return slices.size();
    }
    const MutexLock lock(mutex_);
    const std::size_t capacity = switches_->capacity.load();
    const std::size_t room = capacity - std::min(capacity, taken_.size() + ending_);
    const std::size_t count = std::min(room, slices.size());
    for (Slice* slice : slices.first(count)) {
      slice->scratch = random_.Uniform(options_.delay + 1);
      taken_.push_back(slice);
    }
    switches_->posted += count;
    switches_->max_inflight =
        std::max<std::uint64_t>(switches_->max_inflight, taken_.size() + ending_);
    return count;
  }

  // One turn: slices whose delay is over end, in random order.
  bool Drive() {
    std::vector<Slice*> done;
    std::vector<Slice*> failed;
    Error why;
    {
      const MutexLock lock(mutex_);
      if (driver_ != std::thread::id() || taken_.empty() || switches_->stalled) {
        return false;
      }
      for (std::size_t i = taken_.size(); i > 1; --i) {
        std::swap(taken_[i - 1], taken_[random_.Uniform(i)]);
      }
      why = Error{.code = switches_->fail_as,
                  .message = fmt::format("the fake {} failed on purpose", options_.traits.name)};
      const bool dead = Dead();
      std::erase_if(taken_, [&](Slice* slice) MC_NO_THREAD_SAFETY_ANALYSIS {
        if (slice->scratch != 0) {
          --slice->scratch;
          return false;
        }
        (dead || Fails() ? failed : done).push_back(slice);
        return true;
      });
      driver_ = std::this_thread::get_id();
      ending_ = done.size() + failed.size();
    }
    for (Slice* slice : done) {
      if (options_.copies) {
        Move(*slice);
      }
    }
    // Room first: whoever hears of an end may post again at once.
    {
      const MutexLock lock(mutex_);
      ending_ = 0;
    }
    ForEachSink(done, [](SliceSink& sink, auto part) { sink.OnDone(part); });
    ForEachSink(failed, [&why](SliceSink& sink, auto part) { sink.OnFailed(part, why); });
    {
      const MutexLock lock(mutex_);
      driver_ = std::thread::id();
      idle_.NotifyAll();
    }
    return true;
  }

  void Abort(const Error& why) {
    std::vector<Slice*> ended;
    {
      const MutexLock lock(mutex_);
      ended.swap(taken_);
      // What another thread is just ending counts as taken too.
      while (driver_ != std::thread::id() && driver_ != std::this_thread::get_id()) {
        idle_.Wait(mutex_);
      }
    }
    ForEachSink(ended, [&why](SliceSink& sink, auto part) { sink.OnFailed(part, why); });
  }

  [[nodiscard]] bool Pending() {
    const MutexLock lock(mutex_);
    return !taken_.empty();
  }

 private:
  [[nodiscard]] bool Dead() const {
    const std::uint64_t alive = switches_->incarnation;
    return switches_->down || (alive != 0 && alive != incarnation_);
  }

  [[nodiscard]] bool Troubled() const {
    return switches_->stalled || switches_->fail_next != 0 || Dead();
  }

  bool Fails() MC_REQUIRES(mutex_) {
    std::uint32_t left = switches_->fail_next;
    while (left != 0) {
      if (switches_->fail_next.compare_exchange_weak(left, left - 1)) {
        return true;
      }
    }
    return random_.Chance(options_.fail_percent, 100);
  }

  const FakeOptions options_;
  const std::shared_ptr<Switches> switches_;
  const std::uint64_t incarnation_;
  Mutex mutex_;
  CondVar idle_;
  Rng random_ MC_GUARDED_BY(mutex_);
  std::vector<Slice*> taken_ MC_GUARDED_BY(mutex_);
  std::size_t ending_ MC_GUARDED_BY(mutex_) = 0;
  std::thread::id driver_ MC_GUARDED_BY(mutex_);
};

// Drives lanes that were released, until they are empty.
class FakeTransport::Background {
 public:
  ~Background() { Stop(); }

  Result<void> Start() {
    MC_TRY_ASSIGN(thread_, Thread::Start("fake-reactor", [this] { Run(); }));
    return {};
  }

  void Stop() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.Join();
  }

  void Add(std::shared_ptr<Lane> lane) {
    const MutexLock lock(mutex_);
    lanes_.push_back(std::move(lane));
    changed_.NotifyAll();
  }

 private:
  void Run() {
    constexpr Duration kStalledPause = std::chrono::milliseconds(1);
    mutex_.lock();
    while (!stopping_) {
      std::vector<std::shared_ptr<Lane>> lanes = std::exchange(lanes_, {});
      if (lanes.empty()) {
        changed_.Wait(mutex_);
        continue;
      }
      mutex_.unlock();
      bool moved = false;
      for (const auto& lane : lanes) {
        moved = lane->Drive() || moved;
      }
      std::erase_if(lanes, [](const auto& lane) { return !lane->Pending(); });
      mutex_.lock();
      lanes_.insert(lanes_.end(), lanes.begin(), lanes.end());
      if (!moved && !stopping_) {
        changed_.WaitUntil(mutex_, SteadyClock::Get().Now() + kStalledPause);
      }
    }
    mutex_.unlock();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<Lane>> lanes_ MC_GUARDED_BY(mutex_);
  bool stopping_ MC_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

class FakeTransport::FakeEndpoint final : public Endpoint {
 public:
  FakeEndpoint(std::shared_ptr<Lane> lane, std::shared_ptr<Background> background,
               std::shared_ptr<Switches> switches)
      : lane_(std::move(lane)),
        background_(std::move(background)),
        switches_(std::move(switches)) {}
  ~FakeEndpoint() override {
    lane_->Abort(Error{.code = ErrorCode::kCancelled, .message = "the endpoint is going away"});
  }

  std::size_t Post(std::span<Slice* const> slices) override { return lane_->Post(slices); }
  bool Drive() override { return lane_->Drive(); }
  [[nodiscard]] std::uint64_t MovedBytes() const override { return switches_->moved_bytes; }
  [[nodiscard]] bool CutOff() override { return switches_->cut_off; }
  void Release() override {
    if (background_ != nullptr && lane_->Pending()) {
      background_->Add(lane_);
    }
  }
  void Abort(const Error& why) override {
    ++switches_->aborts;
    switches_->hold_aborts.wait(true);
    lane_->Abort(why);
  }

 private:
  const std::shared_ptr<Lane> lane_;
  const std::shared_ptr<Background> background_;
  const std::shared_ptr<Switches> switches_;
};

FakeTransport::FakeTransport(std::uint64_t seed, const FakeOptions& options)
    : options_(options),
      switches_(std::make_shared<Switches>()),
      next_seed_(seed),
      background_(options.background ? std::make_shared<Background>() : nullptr) {
  switches_->capacity = options.capacity;
}

FakeTransport::~FakeTransport() { Stop(); }

Result<void> FakeTransport::Start() {
  return background_ != nullptr ? background_->Start() : Result<void>();
}

void FakeTransport::Stop() {
  if (background_ != nullptr) {
    background_->Stop();
  }
}

Result<std::unique_ptr<Endpoint>> FakeTransport::Connect(
    std::shared_ptr<const SegmentDescriptor> peer) {
  if (switches_->unreachable) {
    return Fail(ErrorCode::kUnavailable, fmt::format("the fake {} does not reach {} on purpose",
                                                     options_.traits.name, peer->name));
  }
  const std::uint64_t incarnation = peer->extension ? peer->extension->incarnation : 0;
  auto lane = std::make_shared<Lane>(next_seed_++, options_, switches_, incarnation);
  return std::make_unique<FakeEndpoint>(std::move(lane), background_, switches_);
}

}  // namespace mooncake::transfer
