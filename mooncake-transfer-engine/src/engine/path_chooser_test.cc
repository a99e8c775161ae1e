#include "mooncake-transfer-engine/src/engine/path_chooser.h"

#include <gtest/gtest.h>

#include <array>

#include "mooncake-transfer-engine/src/engine/slice_plan.h"

namespace mooncake::transfer {
namespace {

using namespace std::chrono_literals;

constexpr Instant kBegin{1h};

std::optional<std::size_t> Ask(const PathChooser& chooser, Instant now,
                               PathChooser::Question question = {}) {
  static constexpr std::array<std::uint64_t, 4> kNothing{};
  if (question.inflight_bytes.empty()) {
    question.inflight_bytes = std::span(kNothing).first(chooser.size());
  }
  question.length_bytes = 65536;
  return chooser.Choose(question, now);
}

void Break(PathChooser& chooser, std::size_t path, Instant now) {
  chooser.OnFailed(path, now);
  chooser.OnFailed(path, now);
}

TEST(PathChooser, PrefersTheBetterRankHoweverBusyItIs) {
  PathChooser chooser({1, 0});
  EXPECT_EQ(Ask(chooser, kBegin), 1U);
  EXPECT_EQ(Ask(chooser, kBegin, {.inflight_bytes = std::array<std::uint64_t, 2>{0, 1ULL << 40U}}),
            1U);
  EXPECT_EQ(chooser.Sole(), 1U);
  Break(chooser, 1, kBegin);
  EXPECT_EQ(Ask(chooser, kBegin), 0U);
  EXPECT_EQ(chooser.Sole(), std::nullopt);
}

TEST(PathChooser, SpreadsOverEqualPathsByWhatIsOnThem) {
  PathChooser chooser({0, 0});
  const std::array<std::uint64_t, 2> busy{1U << 20U, 1000};
  EXPECT_EQ(Ask(chooser, kBegin, {.inflight_bytes = busy}), 1U);
  EXPECT_EQ(chooser.Sole(), std::nullopt);
}

TEST(PathChooser, LearnsWhichOfTwoPathsIsFaster) {
  PathChooser chooser({0, 0});
  Instant now = kBegin;
  for (int i = 0; i < 50; ++i) {
    chooser.OnDone(0, 1U << 20U, now, now + 1ms);    // 1 GB/s
    chooser.OnDone(1, 1U << 20U, now, now + 100us);  // 10 GB/s
    now += 10ms;
  }
  EXPECT_GT(chooser.bandwidth_bytes_ns(1), 5 * chooser.bandwidth_bytes_ns(0));
  // Five times the bytes are still the shorter way.
  EXPECT_EQ(
      Ask(chooser, now, {.inflight_bytes = std::array<std::uint64_t, 2>{1U << 20U, 5U << 20U}}),
      1U);
}

TEST(PathChooser, DoesNotCountTimeSpentInTheQueue) {
  PathChooser chooser({0, 0});
  Instant now = kBegin;
  for (int i = 0; i < 50; ++i) {
    // Ten slices posted at once, each needs 100 us; the last has waited 900 us before it began.
    for (int k = 1; k <= 10; ++k) {
      chooser.OnDone(0, 1U << 20U, now, now + k * 100us);
    }
    now += 10ms;
  }
  EXPECT_GT(chooser.bandwidth_bytes_ns(0), 8.0);
}

TEST(PathChooser, WaitsForAPausedPathOnlyWithSlicesThatHaveFailedBefore) {
  PathChooser chooser({0});
  Break(chooser, 0, kBegin);
  EXPECT_EQ(Ask(chooser, kBegin, {.first_attempt = false}), std::nullopt);
  EXPECT_EQ(Ask(chooser, kBegin, {.first_attempt = true}), 0U);
  EXPECT_EQ(Ask(chooser, kBegin + 1s, {.first_attempt = false}), 0U);
}

TEST(PathChooser, AvoidsAPathOnlyWhileThereIsAnother) {
  PathChooser chooser({0, 1});
  EXPECT_EQ(Ask(chooser, kBegin, {.avoided = 1}), 1U);
  EXPECT_EQ(Ask(chooser, kBegin, {.excluded = 2, .avoided = 1}), 0U);
  EXPECT_EQ(Ask(chooser, kBegin, {.excluded = 3}), std::nullopt);
}

TEST(PathChooser, BringsAPathBackThroughProbes) {
  PathChooser chooser({0, 0});
  Break(chooser, 0, kBegin);
  const Instant later = kBegin + 1s;
  const std::array<std::uint64_t, 2> other_busy{0, 64U << 20U};
  EXPECT_EQ(Ask(chooser, later), 1U) << "low weight";
  EXPECT_EQ(Ask(chooser, later, {.inflight_bytes = other_busy}), 0U) << "but some weight";
  const std::array<std::uint64_t, 2> probing{1, 64U << 20U};
  EXPECT_EQ(Ask(chooser, later, {.inflight_bytes = probing}), 1U) << "one probe at a time";
  for (int i = 0; i < 4; ++i) {
    chooser.OnDone(0);
  }
  EXPECT_FALSE(chooser.health(0).Probing());
}

TEST(PathHealth, PausesAfterErrorsInARowAndRemembersHowLong) {
  PathHealth health;
  Instant now = kBegin;
  EXPECT_EQ(health.OnFailure(now), now) << "one error may be chance";
  health.OnSuccess();
  EXPECT_EQ(health.OnFailure(now), now);
  Duration pause = health.OnFailure(now) - now;
  EXPECT_EQ(pause, 5ms);
  EXPECT_TRUE(health.Paused(now));
  EXPECT_FALSE(health.Paused(now + pause));
  for (int i = 0; i < 20; ++i) {
    now += pause;
    const Duration next = health.OnFailure(now) - now;  // The probe failed.
    EXPECT_EQ(next, std::min<Duration>(pause * 2, 100ms));
    pause = next;
  }
  for (int i = 0; i < 4; ++i) {
    health.OnSuccess();
  }
  EXPECT_FALSE(health.Probing());
  EXPECT_FALSE(health.Untroubled()) << "the next pause is still long";
  health.OnFailure(now);
  EXPECT_EQ(health.OnFailure(now) - now, 100ms);
  for (int i = 0; i < 5000; ++i) {
    health.OnSuccess();
  }
  EXPECT_TRUE(health.Untroubled());
}

TEST(SlicePlan, KeepsSmallRequestsWholeAndCutsLargeOnesForSeveralPaths) {
  EXPECT_GE(SliceLength(4096, {.max_slice_bytes = 1U << 20U, .usable_paths = 4}), 4096U);
  EXPECT_EQ(SliceLength(32U << 20U, {.max_slice_bytes = 1U << 20U, .usable_paths = 1}), 1U << 20U);
  EXPECT_EQ(SliceLength(32U << 20U, {.max_slice_bytes = 64U << 20U, .usable_paths = 2}), 4U << 20U);
  EXPECT_EQ(SliceLength(200'000, {.max_slice_bytes = 64U << 20U, .usable_paths = 8}), kMinCutBytes);
  EXPECT_EQ(SliceLength(10, {.max_slice_bytes = 0}), 1U);
  for (std::uint64_t bytes = 65'537; bytes < (1U << 24U); bytes += 99'991) {
    EXPECT_EQ(SliceLength(bytes, {.max_slice_bytes = 1U << 20U, .usable_paths = 3}) % 4096, 0U);
  }
}

}  // namespace
}  // namespace mooncake::transfer
