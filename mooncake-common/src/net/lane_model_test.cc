// Steps the lane's protocol through many orders of events: callers, a reactor and a peer are
// fibers, and each seed decides at every call out of LaneCore who goes on.
#include <gtest/gtest.h>
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/random.h"
#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/net/lane_core.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define MC_FIBERS_UNDER_ASAN 1
#endif
#endif

namespace mooncake {
namespace {

// Runs functions by turns on one thread; which one goes on is drawn from the seed.
class Scheduler {
 public:
  explicit Scheduler(Rng& rng) : rng_(rng) {}

  // An actor that never ends by itself is a `service`.
  void Add(std::function<void()> body, bool service = false) {
    auto fiber = std::make_unique<Fiber>();
    fiber->body = std::move(body);
    fiber->service = service;
    fiber->stack.resize(kStackBytes);
    fibers_.push_back(std::move(fiber));
  }

  // Lets others go on.
  void Yield() {
    if (current_ != nullptr) {
      SwitchOut();
    }
  }
  // The current actor does nothing until `ready`.
  void Await(std::function<bool()> ready) {
    current_->ready = std::move(ready);
    SwitchOut();
    current_->ready = nullptr;
  }

  // Returns true when all actors but services have ended, false when none can go on, or `max_turns`
  // were not enough.
  bool Run(int max_turns) {
    for (int turn = 0; turn < max_turns; ++turn) {
      std::vector<Fiber*> able;
      bool open = false;
      for (const auto& fiber : fibers_) {
        open |= !fiber->ended && !fiber->service;
        if (!fiber->ended && (!fiber->ready || fiber->ready())) {
          able.push_back(fiber.get());
        }
      }
      if (!open) {
        return true;
      }
      if (able.empty()) {
        return false;
      }
      SwitchTo(*able[rng_.Uniform(able.size())]);
    }
    return false;
  }

 private:
  static constexpr std::size_t kStackBytes = std::size_t{64} * 1024;
  struct Fiber {
    std::function<void()> body;
    std::function<bool()> ready;
    std::vector<char> stack;
    ucontext_t context{};
    bool service = false;
    bool started = false;
    bool ended = false;
    void* fake_stack = nullptr;
  };

  static void Enter() {
    Scheduler* self = active;
#ifdef MC_FIBERS_UNDER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &self->main_stack_, &self->main_stack_bytes_);
#endif
    self->current_->body();
    self->current_->ended = true;
    self->SwitchOut();
  }

  void SwitchTo(Fiber& fiber) {
    active = this;
    current_ = &fiber;
    if (!fiber.started) {
      fiber.started = true;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      makecontext(&fiber.context, &Scheduler::Enter, 0);
    }
#ifdef MC_FIBERS_UNDER_ASAN
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, fiber.stack.data(), fiber.stack.size());
#endif
    swapcontext(&main_, &fiber.context);
#ifdef MC_FIBERS_UNDER_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
    current_ = nullptr;
  }

  void SwitchOut() {
    Fiber& fiber = *current_;
#ifdef MC_FIBERS_UNDER_ASAN
    __sanitizer_start_switch_fiber(fiber.ended ? nullptr : &fiber.fake_stack, main_stack_,
                                   main_stack_bytes_);
#endif
    swapcontext(&fiber.context, &main_);
#ifdef MC_FIBERS_UNDER_ASAN
    __sanitizer_finish_switch_fiber(fiber.fake_stack, &main_stack_, &main_stack_bytes_);
#endif
  }

  static inline Scheduler* active = nullptr;

  Rng& rng_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
  ucontext_t main_{};
  [[maybe_unused]] const void* main_stack_ = nullptr;
  [[maybe_unused]] std::size_t main_stack_bytes_ = 0;
};

struct Operation {
  bool done = false;
  bool failed = false;
};

// A socket, its driver, and what the kernel knows of both.
class ModelPort final : public LaneCore::Port {
 public:
  ModelPort(Scheduler& scheduler, Rng& rng) : scheduler_(scheduler), rng_(rng) {}

  // A caller's side: refused once closed, as OnClosed demands.
  void Post(Operation* operation) {
    if (closed_) {
      operation->done = operation->failed = true;
    } else {
      posted_.push_back(operation);
    }
  }

  Result<LaneDriver::Progress> Drive() override {
    const Exclusive turn(*this);
    if (lost_) {
      return Fail(ErrorCode::kUnavailable, "lost");
    }
    auto progress = LaneDriver::Progress::kIdle;
    while (!posted_.empty() && room_ > 0) {
      sent_.push_back(posted_.front());
      posted_.pop_front();
      --room_;
      progress = LaneDriver::Progress::kMoved;
    }
    blocked_ = !posted_.empty();
    scheduler_.Yield();
    while (!arrived_.empty()) {
      arrived_.front()->done = true;
      arrived_.pop_front();
      progress = LaneDriver::Progress::kMoved;
      scheduler_.Yield();
    }
    return progress;
  }
  bool HasPending() override {
    const Exclusive turn(*this);
    const bool pending = !posted_.empty() || !sent_.empty() || !arrived_.empty();
    return pending;
  }
  // Only what an attempt to write left behind, as real drivers know it.
  bool WantsWrite() override {
    const Exclusive turn(*this);
    return blocked_;
  }
  void Arm(LaneCore::Interest interest) override {
    const Exclusive turn(*this);
    armed_ = interest;
    ++arms_;
  }
  void Close(const Error& /*why*/) override {
    const Exclusive turn(*this);
    closed_ = true;
    armed_ = LaneCore::Interest::kNothing;
    for (auto* queue : {&posted_, &sent_, &arrived_}) {
      for (Operation* operation : *queue) {
        operation->done = operation->failed = true;
      }
      queue->clear();
    }
  }

  // The kernel's side. Level-triggered.
  [[nodiscard]] bool Ready() const {
    if (armed_ == LaneCore::Interest::kNothing) {
      return false;
    }
    return lost_ || (armed_ >= LaneCore::Interest::kRead && !arrived_.empty()) ||
           (armed_ == LaneCore::Interest::kReadWrite && room_ > 0);
  }
  void UseUpOneShot() { armed_ = LaneCore::Interest::kNothing; }

  // The peer's side: answers something, in any order, and makes room.
  [[nodiscard]] bool PeerHasWork() const { return !closed_ && (!sent_.empty() || room_ == 0); }
  void PeerWorks() {
    room_ = 1 + rng_.Uniform(3);
    if (!sent_.empty()) {
      const auto it = sent_.begin() + static_cast<std::ptrdiff_t>(rng_.Uniform(sent_.size()));
      arrived_.push_back(*it);
      sent_.erase(it);
    }
  }
  void Lose() { lost_ = true; }

  [[nodiscard]] int arms() const { return arms_; }

 private:
  // Fails the test when two threads are inside at once, or anyone after Close.
  class Exclusive {
   public:
    explicit Exclusive(ModelPort& port) : port_(port) {
      port_.scheduler_.Yield();
      EXPECT_FALSE(port_.inside_) << "two drivers at once";
      EXPECT_FALSE(port_.closed_) << "driven after close";
      port_.inside_ = true;
      port_.scheduler_.Yield();
    }
    ~Exclusive() {
      port_.scheduler_.Yield();
      port_.inside_ = false;
      port_.scheduler_.Yield();
    }

   private:
    ModelPort& port_;
  };

  Scheduler& scheduler_;
  Rng& rng_;
  std::deque<Operation*> posted_;
  std::deque<Operation*> sent_;     // With the peer.
  std::deque<Operation*> arrived_;  // Answers in the socket.
  std::uint64_t room_ = 2;          // Operations that the socket takes before it blocks.
  LaneCore::Interest armed_ = LaneCore::Interest::kHangup;
  bool blocked_ = false;  // The last attempt to write found no room for all.
  bool inside_ = false;
  bool closed_ = false;
  bool lost_ = false;
  int arms_ = 0;
};

// One history: callers of every kind post and wait for what they posted.
void RunHistory(std::uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed=" << seed);
  Rng rng(seed);
  Scheduler scheduler(rng);
  ModelPort port(scheduler, rng);
  LaneCore lane(port, LaneCore::Interest::kHangup, 1 + static_cast<int>(rng.Uniform(3)));
  lane.Begin();
  std::deque<Operation> operations;

  const std::uint64_t callers = 1 + rng.Uniform(4);
  for (std::uint64_t caller = 0; caller < callers; ++caller) {
    scheduler.Add([&] {
      const std::uint64_t calls = 1 + rng.Uniform(4);
      for (std::uint64_t call = 0; call < calls; ++call) {
        Operation& operation = operations.emplace_back();
        port.Post(&operation);
        scheduler.Yield();
        switch (rng.Uniform(4)) {
          case 0:
            lane.TryDrive();
            break;
          case 1:
            lane.DriveUntil([&] { return scheduler.Yield(), operation.done; }, Duration::zero());
            break;
          case 2:
            EXPECT_TRUE(
                lane.DriveUntil([&] { return scheduler.Yield(), operation.done; }, kEndlessSpin));
            break;
          default:
            for (std::uint64_t turn = rng.Uniform(4) + 1; turn > 0; --turn) {
              lane.Poll();
              scheduler.Yield();
            }
            lane.Release();
        }
        if (rng.Chance(2, 3)) {
          scheduler.Await([&operation] { return operation.done; });  // Asleep.
        }
      }
    });
  }
  scheduler.Add(
      [&] {  // The reactor: the kernel uses up the one-shot some time before the callback runs.
        for (;;) {
          scheduler.Await([&] { return port.Ready(); });
          port.UseUpOneShot();
          scheduler.Yield();
          lane.Fire();
        }
      },
      /*service=*/true);
  scheduler.Add(
      [&] {
        for (;;) {
          scheduler.Await([&] { return port.PeerHasWork(); });
          port.PeerWorks();
        }
      },
      /*service=*/true);
  bool expect_failures = false;
  switch (rng.Uniform(6)) {
    case 0:
      expect_failures = true;
      scheduler.Add([&] { port.Lose(); });
      break;
    case 1:
      expect_failures = true;
      scheduler.Add([&] { lane.RequestClose({ErrorCode::kCancelled, "asked to"}); });
      break;
    default:
      break;
  }
  // All that was posted ends, also what nobody waited for, and everyone has left.
  scheduler.Add([&] {
    scheduler.Await([&] {
      return operations.size() >= callers && lane.unused() &&
             std::ranges::all_of(operations, [](const Operation& each) { return each.done; });
    });
  });
  ASSERT_TRUE(scheduler.Run(200'000)) << "something posted was forgotten";
  for (const Operation& each : operations) {
    EXPECT_TRUE(expect_failures || !each.failed);
  }
}

// Goal: whatever the order, each post completes, and never do two threads drive. Method: random
// histories; one in which nobody can go on has lost a wake-up.
TEST(LaneModel, CompletesEachPostByOneDriverAtATimeForAnySeed) {
  for (std::uint64_t seed = 0; seed < 4000 && !testing::Test::HasFailure(); ++seed) {
    RunHistory(seed);
  }
}

// The path that latency depends on: one caller at a time, nothing else pending.
TEST(LaneModel, NeverArmsWhileCallersWaitForTheirOwnAnswers) {
  Rng rng(1);
  Scheduler scheduler(rng);
  ModelPort port(scheduler, rng);
  LaneCore lane(port, LaneCore::Interest::kHangup);
  lane.Begin();
  scheduler.Add([&] {
    for (int call = 0; call < 100; ++call) {
      Operation operation;
      port.Post(&operation);
      EXPECT_TRUE(lane.DriveUntil([&] { return scheduler.Yield(), operation.done; }, kEndlessSpin));
    }
  });
  scheduler.Add(
      [&] {
        for (;;) {
          scheduler.Await([&] { return port.PeerHasWork(); });
          port.PeerWorks();
        }
      },
      /*service=*/true);
  ASSERT_TRUE(scheduler.Run(200'000));
  EXPECT_EQ(port.arms(), 0);
}

// Goal: a peer that goes away is noticed also by a lane whose pollers have what they wanted and
// rest, as they do without a word (Release() costs a swap). Method: the one-shot of the connecting
// socket is used up while somebody polls.
TEST(LaneModel, WatchesForTheEndOfTheConnectionWhilePollersRest) {
  struct RestingPort final : LaneCore::Port {
    Result<LaneDriver::Progress> Drive() override { return progress; }
    bool HasPending() override { return pending; }
    bool WantsWrite() override { return pending; }
    void Arm(LaneCore::Interest interest) override { armed = interest; }
    void Close(const Error& /*why*/) override {}

    LaneDriver::Progress progress = LaneDriver::Progress::kIdle;
    bool pending = false;
    LaneCore::Interest armed = LaneCore::Interest::kHangup;
  };
  RestingPort port;
  LaneCore lane(port, LaneCore::Interest::kHangup);
  lane.Begin();
  port.pending = true;
  lane.TryDrive();
  ASSERT_EQ(port.armed, LaneCore::Interest::kReadWrite);
  port.progress = LaneDriver::Progress::kMoved;
  EXPECT_TRUE(lane.Poll());
  port.pending = false;
  port.progress = LaneDriver::Progress::kIdle;
  port.armed = LaneCore::Interest::kNothing;  // What the kernel does before it calls.
  lane.Fire();
  EXPECT_EQ(port.armed, LaneCore::Interest::kHangup);
}

}  // namespace
}  // namespace mooncake
