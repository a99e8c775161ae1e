#include "mooncake-transfer-engine/src/engine/path_chooser.h"

#include <algorithm>
#include <limits>

namespace mooncake::transfer {

namespace {

// Slices up to here say something about latency, longer ones about bandwidth.
constexpr std::uint64_t kLatencyBytes = 8192;

}  // namespace

PathChooser::PathChooser(const std::vector<std::uint32_t>& ranks, const Options& options)
    : options_(options) {
  MC_CHECK(ranks.size() <= kMaxPaths);
  paths_.reserve(ranks.size());
  for (const std::uint32_t rank : ranks) {
    paths_.push_back(State{.rank = rank,
                           .health = PathHealth(options.health),
                           .bandwidth = options.first_bandwidth_bytes_ns,
                           .latency = options.first_latency_ns});
  }
}

double PathChooser::Cost(const State& path, std::uint64_t bytes) const {
  const double cost = path.latency + static_cast<double>(bytes) / path.bandwidth;
  return path.health.Probing() ? cost * options_.probe_cost : cost;
}

std::optional<std::size_t> PathChooser::Choose(const Question& question, Instant now) const {
  // Groups are tried in this order: free of blame, failed with this slice before, paused or being
  // probed. Within a group the rank decides, then the cost.
  enum Group : std::uint8_t { kGood, kAvoided, kPaused, kNone };
  Group best_group = kNone;
  std::uint32_t best_rank = 0;
  double best_cost = 0;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const std::uint32_t bit = 1U << i;
    if ((question.excluded & bit) != 0) {
      continue;
    }
    const State& path = paths_[i];
    Group group = (question.avoided & bit) != 0 ? kAvoided : kGood;
    if (path.health.Paused(now)) {
      if (!question.first_attempt) {
        continue;
      }
      group = kPaused;
    } else if (path.health.Probing() && question.inflight_bytes[i] != 0) {
      group = kPaused;  // One probe at a time, unless nothing else is there.
    }
    const double cost = Cost(path, question.inflight_bytes[i] + question.length_bytes);
    const bool better = group != best_group      ? group < best_group
                        : path.rank != best_rank ? path.rank < best_rank
                                                 : cost < best_cost;
    if (better) {
      best_group = group;
      best_rank = path.rank;
      best_cost = cost;
      best = i;
    }
  }
  return best;
}

void PathChooser::OnDone(std::size_t path, std::uint64_t length_bytes, Instant posted,
                         Instant done) {
  State& state = paths_[path];
  state.health.OnSuccess();
  const Instant began = std::max(posted, state.last_done);
  state.last_done = std::max(done, state.last_done);
  const auto took = static_cast<double>((done - began).count());
  if (took <= 0) {
    return;  // Ended in the same instant as the one before it: nothing to learn.
  }
  const double keep = options_.memory;
  if (length_bytes <= kLatencyBytes) {
    state.latency = keep * state.latency + (1 - keep) * took;
  } else {
    // What is left after the latency, but not less than half, so that a wrong latency cannot make
    // the bandwidth infinite.
    const double moving = std::max(took - state.latency, took / 2);
    state.bandwidth =
        keep * state.bandwidth + (1 - keep) * static_cast<double>(length_bytes) / moving;
  }
}

std::optional<std::size_t> PathChooser::Sole() const {
  std::uint32_t best_rank = std::numeric_limits<std::uint32_t>::max();
  std::optional<std::size_t> sole;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].rank < best_rank) {
      best_rank = paths_[i].rank;
      sole = i;
    } else if (paths_[i].rank == best_rank) {
      sole.reset();
    }
  }
  return sole && paths_[*sole].health.Untroubled() ? sole : std::nullopt;
}

}  // namespace mooncake::transfer
