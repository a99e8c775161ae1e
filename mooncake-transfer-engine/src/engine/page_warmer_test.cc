#include "mooncake-transfer-engine/src/engine/page_warmer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <vector>

#include "mooncake-common/src/concurrency/parking.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::transfer {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kStep = PageWarmer::kStepBytes;

// Stands for memory: nothing is behind these addresses.
std::byte* At(std::uint64_t number) {
  return reinterpret_cast<std::byte*>(number << 40U);  // NOLINT(performance-no-int-to-ptr)
}

// Of a thread that never waits for a processor.
Duration NeverWaited() { return SteadyClock::Get().Now().time_since_epoch(); }

// Remembers what was populated, by the begin of each step.
class Recorder {
 public:
  [[nodiscard]] PageWarmer::Machine Machine() {
    return {.populate =
                [this](std::byte* address, std::uint64_t length_bytes) {
                  const MutexLock lock(mutex_);
                  steps_[address] += length_bytes;
                  return !refuse_;
                },
            .available_share = [this] { return available_.load(); },
            .ran = &NeverWaited};
  }
  std::map<std::byte*, std::uint64_t> steps() {
    const MutexLock lock(mutex_);
    return steps_;
  }
  std::atomic<bool> refuse_ = false;
  std::atomic<double> available_ = 1.0;

 private:
  Mutex mutex_;
  std::map<std::byte*, std::uint64_t> steps_ MC_GUARDED_BY(mutex_);
};

TEST(BackgroundPace, RestsForLongerAndLongerWhereOthersWantTheProcessors) {
  BackgroundPace pace;
  EXPECT_EQ(pace.PauseAfter(250us, 200us), 0ms);
  EXPECT_EQ(pace.PauseAfter(4ms, 200us), 10ms);
  EXPECT_EQ(pace.PauseAfter(250us, 200us), 0ms);
  EXPECT_EQ(pace.PauseAfter(4ms, 200us), 20ms);
  for (int step = 0; step < 10; ++step) {
    EXPECT_LE(pace.PauseAfter(4ms, 200us), 640ms);
  }
  EXPECT_EQ(pace.PauseAfter(4ms, 200us), 640ms);
  for (int step = 0; step < 64; ++step) {  // Others have gone.
    EXPECT_EQ(pace.PauseAfter(250us, 200us), 0ms);
  }
  EXPECT_EQ(pace.PauseAfter(4ms, 200us), 10ms);
}

TEST(PageWarmer, TakesEveryByteOnceInSteps) {
  Recorder recorder;
  PageWarmer warmer(recorder.Machine());
  warmer.Add(At(1), 2 * kStep + 4096);
  warmer.Add(At(2), 4096);
  warmer.Drain();
  const std::map<std::byte*, std::uint64_t> expected{
      {At(1), kStep}, {At(1) + kStep, kStep}, {At(1) + 2 * kStep, 4096}, {At(2), 4096}};
  EXPECT_EQ(recorder.steps(), expected);
  warmer.Add(At(3), 4096);  // By a new thread: the first has ended.
  warmer.Drain();
  EXPECT_EQ(recorder.steps().size(), 5U);
}

TEST(PageWarmer, LeavesTheRestToTheFirstTouchWhenMemoryIsShort) {
  Recorder recorder;
  recorder.available_ = 0.25;
  PageWarmer warmer(recorder.Machine());
  warmer.Add(At(1), kStep);
  warmer.Drain();
  EXPECT_TRUE(recorder.steps().empty());
}

TEST(PageWarmer, IsStoppedInTheMiddleOfARest) {
  Recorder recorder;
  PageWarmer::Machine machine = recorder.Machine();
  machine.ran = [] { return 0ms; };
  machine.populate = [&, slow = recorder.Machine().populate](std::byte* at, std::uint64_t length) {
    const Instant end = SteadyClock::Get().Now() + 1100us;  // Of others.
    while (SteadyClock::Get().Now() < end) {
    }
    return slow(at, length);
  };
  PageWarmer warmer(std::move(machine));
  warmer.Add(At(1), 1'000'000 * kStep);
  EXPECT_TRUE(WaitUntil([&] { return recorder.steps().size() >= 5; }));
  warmer.Stop();
  EXPECT_LT(recorder.steps().size(), 1'000'000U);
}

TEST(PageWarmer, LooksAtTheMemoryAgainWhileItWorks) {
  Recorder recorder;
  PageWarmer::Machine machine = recorder.Machine();
  int looks = 0;
  machine.available_share = [&looks] { return ++looks == 1 ? 1.0 : 0.0; };
  PageWarmer warmer(std::move(machine));
  warmer.Add(At(1), 1000 * kStep);
  warmer.Drain();
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(recorder.steps().size(), 64U);
}

TEST(PageWarmer, GivesUpARangeThatCannotBeTreatedSo) {
  Recorder recorder;
  recorder.refuse_ = true;
  PageWarmer warmer(recorder.Machine());
  warmer.Add(At(1), 10 * kStep);
  warmer.Add(At(2), 10 * kStep);
  warmer.Drain();
  EXPECT_EQ(recorder.steps().size(), 2U);
}

// Goal: who unmaps the range after Remove() never has it touched again.
TEST(PageWarmer, RemoveWaitsForTheStepInProgress) {
  Event in_step;
  Event go_on;
  std::atomic<bool> left = false;
  std::atomic<int> steps = 0;
  PageWarmer warmer({.populate =
                         [&](std::byte*, std::uint64_t) {
                           ++steps;
                           in_step.Notify();
                           (void)go_on.Wait(HangDeadline());
                           left = true;
                           return true;
                         },
                     .available_share = [] { return 1.0; },
                     .ran = &NeverWaited});
  warmer.Add(At(1), 10 * kStep);
  ASSERT_TRUE(in_step.Wait(HangDeadline()));
  auto helper = Thread::Start("helper", [&] { go_on.Notify(); });
  ASSERT_TRUE(helper);
  warmer.Remove(At(1));
  EXPECT_TRUE(left);
  const int before = steps;
  warmer.Drain();
  EXPECT_EQ(steps, before);
  warmer.Remove(At(1));  // Nothing there: no mistake.
}

TEST(PageWarmer, AddAfterStopDoesNothing) {
  Recorder recorder;
  PageWarmer warmer(recorder.Machine());
  warmer.Stop();
  warmer.Add(At(1), kStep);
  warmer.Drain();
  warmer.Stop();
  EXPECT_TRUE(recorder.steps().empty());
}

TEST(PageWarmer, MakesRealPagesAndKeepsWhatIsInThem) {
  constexpr std::size_t kBytes = 3 * kStep;
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* bytes = static_cast<std::byte*>(memory);
  bytes[5] = std::byte{77};
  PageWarmer::Machine machine = PageWarmer::ThisMachine();
  machine.available_share = [] { return 1.0; };  // Whatever else runs here.
  PageWarmer warmer(std::move(machine));
  warmer.Add(bytes, kBytes);
  warmer.Drain();
  std::vector<unsigned char> resident(kBytes / static_cast<std::size_t>(::getpagesize()));
  ASSERT_EQ(::mincore(memory, kBytes, resident.data()), 0);
  EXPECT_EQ(std::ranges::count_if(resident, [](unsigned char page) { return (page & 1U) == 0; }),
            0);
  EXPECT_EQ(bytes[5], std::byte{77});
  warmer.Stop();
  ::munmap(memory, kBytes);
}

TEST(AvailableShare, IsReadFromTheKernelsTexts) {
  EXPECT_DOUBLE_EQ(AvailableShareOfMachine("MemTotal:       1000 kB\nMemFree:  1 kB\n"
                                           "MemAvailable:    250 kB\n"),
                   0.25);
  EXPECT_DOUBLE_EQ(AvailableShareOfMachine(""), 1.0);
  EXPECT_DOUBLE_EQ(AvailableShareOfMachine("MemTotal: x\nMemAvailable: 1"), 1.0);
  EXPECT_DOUBLE_EQ(AvailableShareOfGroup("1000\n", "900\n", ""), 1.0 - 0.9);
  EXPECT_DOUBLE_EQ(AvailableShareOfGroup("1000\n", "900\n", "anon 1\ninactive_file 400\nx 2\n"),
                   0.5);
  EXPECT_DOUBLE_EQ(AvailableShareOfGroup("1000\n", "1100\n", ""), 0.0);
  EXPECT_DOUBLE_EQ(AvailableShareOfGroup("max\n", "900\n", ""), 1.0);
  EXPECT_DOUBLE_EQ(AvailableShareOfGroup("", "", ""), 1.0);
  const double here = PageWarmer::ThisMachine().available_share();
  EXPECT_GE(here, 0.0);
  EXPECT_LE(here, 1.0);
}

}  // namespace
}  // namespace mooncake::transfer
