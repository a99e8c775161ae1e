#include "mooncake-common/src/sim/network.h"

#include <algorithm>

namespace mooncake::sim {
namespace {

// Mostly around `typical`, now and then several times of it, never beyond 48 times. Integers only,
// so that every C library draws the same.
Duration DrawAround(Rng& rng, Duration typical) {
  auto nanoseconds = static_cast<std::uint64_t>(typical.count());
  nanoseconds = nanoseconds / 2 + rng.Uniform(nanoseconds + 1);
  for (int doubling = 0; doubling < 5 && rng.Chance(1, 4); ++doubling) {
    nanoseconds *= 2;
  }
  return Duration(nanoseconds);
}

bool Happens(Rng& rng, double probability) {
  return probability > 0 && rng.UnitInterval() < probability;
}

// None in half of the seeds, else anything up to `severe`.
double DrawRate(Rng& rng, double severe) {
  return rng.Chance(1, 2) ? 0.0 : rng.UnitInterval() * severe;
}

// Between two messages of one lane: events of one instant run in a drawn order, these must not.
constexpr Duration kGap{1};

}  // namespace

FaultRates FaultRates::Draw(Rng& rng) {
  FaultRates rates;
  rates.min_delay = std::chrono::microseconds(1 + rng.Uniform(50));
  rates.extra_delay = std::chrono::microseconds(1 + rng.Uniform(500));
  rates.stall = DrawRate(rng, 0.02);
  rates.stall_time = std::chrono::milliseconds(1 + rng.Uniform(200));
  rates.reset = DrawRate(rng, 0.05);
  rates.lose = DrawRate(rng, 0.2);
  rates.duplicate = DrawRate(rng, 0.2);
  rates.detection = std::chrono::milliseconds(1 + rng.Uniform(500));
  return rates;
}

std::string FaultRates::ToString() const {
  const auto us = [](Duration time) { return time.count() / 1000; };
  return fmt::format(
      "delay {}+{} us, stall {:.4f} of {} us, reset {:.4f}, lose {:.4f}, duplicate {:.4f}, "
      "detection {} us",
      us(min_delay), us(extra_delay), stall, us(stall_time), reset, lose, duplicate, us(detection));
}

struct Network::PendingCall {
  LaneKey lane;
  std::uint64_t from_life = 0;
  std::uint64_t to_life = 0;
  Serve serve;
  Lost lost;
  bool settled = false;  // An answer arrived, or the caller was told that none will.
  bool reset_in_flight =
      false;                 // Drawn at the start: the connection breaks on the request's way...
  bool reset_after = false;  // ... or after the request was served.
};

ProcessId Network::AddProcess(std::string name) {
  processes_.push_back(Process{.name = std::move(name)});
  return static_cast<ProcessId>(processes_.size() - 1);
}

const std::string& Network::Name(ProcessId process) const { return processes_.at(process).name; }

bool Network::IsUp(ProcessId process) const { return processes_.at(process).up; }

std::uint64_t Network::Life(ProcessId process) const { return processes_.at(process).life; }

void Network::Crash(ProcessId process) {
  Process& victim = processes_.at(process);
  if (!victim.up) {
    return;
  }
  simulator_.Note("{} crashes", victim.name);
  victim.up = false;
  ++victim.life;
  for (auto& [key, lane] : lanes_) {
    if (key.first.first == process) {
      lane.calls.clear();  // Nobody is left to hear of them.
    } else if (key.first.second == process) {
      ResetLane(key, "the peer died");
    }
  }
}

void Network::Restart(ProcessId process) {
  Process& risen = processes_.at(process);
  MC_CHECK(!risen.up);
  simulator_.Note("{} starts again", risen.name);
  risen.up = true;
}

void Network::RunOn(ProcessId process, Duration delay, Simulator::Task task) {
  simulator_.After(delay, [this, process, life = Life(process), task = std::move(task)]() mutable {
    if (IsUp(process) && Life(process) == life) {
      task();
    }
  });
}

std::pair<ProcessId, ProcessId> Network::Pair(ProcessId a, ProcessId b) {
  return {std::min(a, b), std::max(a, b)};
}

void Network::Partition(ProcessId a, ProcessId b, Duration heal) {
  Instant& until = cut_until_[Pair(a, b)];
  until = std::max(until, simulator_.Now() + heal);
  simulator_.Note("{} and {} are cut off for {} ms", Name(a), Name(b), heal.count() / 1'000'000);
}

void Network::HealAll() { cut_until_.clear(); }

bool Network::Reachable(ProcessId a, ProcessId b) const {
  const auto cut = cut_until_.find(Pair(a, b));
  return cut == cut_until_.end() || cut->second <= simulator_.Now();
}

Duration Network::DrawDelay() {
  Rng& rng = simulator_.rng();
  Duration delay = rates_.min_delay + DrawAround(rng, rates_.extra_delay);
  if (Happens(rng, rates_.stall)) {
    delay += DrawAround(rng, rates_.stall_time);
  }
  return delay;
}

Duration Network::DrawDetection() {
  return rates_.min_delay + DrawAround(simulator_.rng(), rates_.detection);
}

Instant Network::Arrival(ProcessId a, ProcessId b) {
  const Instant now = simulator_.Now();
  const auto cut = cut_until_.find(Pair(a, b));
  const Instant start = cut == cut_until_.end() ? now : std::max(now, cut->second);
  return start + DrawDelay();
}

void Network::Call(ProcessId from, ProcessId to, std::uint32_t lane, Serve serve, Lost lost) {
  MC_CHECK(IsUp(from));
  auto call = std::make_shared<PendingCall>();
  call->lane = LaneKey{{from, to}, lane};
  call->from_life = Life(from);
  call->to_life = Life(to);
  call->serve = std::move(serve);
  call->lost = std::move(lost);
  if (!IsUp(to)) {
    Lose(call, DrawDelay(), "connection refused");
    return;
  }
  if (Happens(simulator_.rng(), rates_.reset)) {
    (simulator_.rng().Chance(1, 2) ? call->reset_in_flight : call->reset_after) = true;
  }
  Lane& way = lanes_[call->lane];
  std::erase_if(way.calls, [](const auto& weak) {
    const auto known = weak.lock();
    return known == nullptr || known->settled;
  });
  way.calls.push_back(call);
  const Instant arrival = std::max(way.last_request + kGap, Arrival(from, to));
  way.last_request = arrival;
  const Instant patience = simulator_.Now() + DrawDetection();
  if (!Reachable(from, to) && arrival > patience) {
    // The kernel gives up before the cut heals.
    Lose(call, patience - simulator_.Now(), "no answer to keepalive");
  }
  simulator_.At(arrival, [this, call] { Arrive(call); });
}

void Network::Arrive(const std::shared_ptr<PendingCall>& call) {
  const auto [from, to] = call->lane.first;
  if (!IsUp(to) || Life(to) != call->to_life) {
    Lose(call, DrawDelay(), "connection reset");
    return;
  }
  if (call->settled && simulator_.rng().Chance(1, 2)) {
    return;  // The connection broke meanwhile, before the bytes were read; else they were.
  }
  if (call->reset_in_flight) {
    ResetLane(call->lane, "connection reset");
    return;
  }
  Reply reply = call->serve();
  if (call->reset_after) {
    ResetLane(call->lane, "connection reset");
    return;
  }
  SendReply(call, std::move(reply));
}

void Network::SendReply(const std::shared_ptr<PendingCall>& call, Reply reply) {
  const auto [from, to] = call->lane.first;
  Lane& way = lanes_[call->lane];
  const Instant arrival = std::max(way.last_reply + kGap, Arrival(to, from));
  way.last_reply = arrival;
  const Instant patience = simulator_.Now() + DrawDetection();
  if (!Reachable(from, to) && arrival > patience) {
    Lose(call, patience - simulator_.Now(), "no answer to keepalive");
  }
  simulator_.At(arrival, [this, call, reply = std::move(reply)]() mutable {
    const ProcessId caller = call->lane.first.first;
    if (call->settled || !IsUp(caller) || Life(caller) != call->from_life) {
      return;
    }
    call->settled = true;
    reply();
  });
}

void Network::Lose(const std::shared_ptr<PendingCall>& call, Duration delay, std::string why) {
  simulator_.After(delay, [this, call, why = std::move(why)] {
    const auto [from, to] = call->lane.first;
    if (call->settled || !IsUp(from) || Life(from) != call->from_life) {
      return;
    }
    call->settled = true;
    call->lost(Error{ErrorCode::kUnavailable, fmt::format("call {}: {}", Name(to), why)});
  });
}

void Network::ResetLane(const LaneKey& key, std::string_view why) {
  Lane& lane = lanes_[key];
  const Duration notice = DrawDelay();
  for (const auto& weak : lane.calls) {
    if (const auto call = weak.lock(); call != nullptr && !call->settled) {
      Lose(call, notice, std::string(why));
    }
  }
  lane.calls.clear();
}

void Network::Send(ProcessId from, ProcessId to, const std::function<void()>& deliver) {
  Rng& rng = simulator_.rng();
  const int copies = Happens(rng, rates_.duplicate) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    if (!Reachable(from, to) || Happens(rng, rates_.lose)) {
      continue;
    }
    RunOn(to, DrawDelay(), deliver);
  }
}

}  // namespace mooncake::sim
