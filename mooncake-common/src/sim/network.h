// Named processes and what happens between them: calls over connections, single messages,
// partitions, crashes and restarts, all at rates drawn from the seed.
//
// A message is a closure that runs where it arrives, so any types travel without an encoding:
//
//   network.Call(client, master, lane,
//                [&, request] { return [reply = master_state.Handle(request)] { use(reply); }; },
//                [](const Error& why) { ... });
//
// A call behaves as an RPC over TCP does: calls of one lane arrive in order and are answered in
// order; nothing is duplicated; but the connection can be reset, and then the caller does not know
// whether its request was carried out. During a partition bytes wait and arrive late if it heals in
// time. A datagram may be lost, duplicated and overtaken.
//
// Thread-safety: none; driven by one Simulator, which must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mooncake-common/src/base/result.h"
#include "mooncake-common/src/sim/simulator.h"

namespace mooncake::sim {

using ProcessId = std::uint32_t;

// How often things go wrong. Probabilities are per message; times are typical values
// around which each message draws its own, sometimes many times longer.
struct FaultRates {
  Duration min_delay = std::chrono::microseconds(5);
  Duration extra_delay = std::chrono::microseconds(20);
  double stall = 0;  // The message (and its lane behind it) waits for stall_time more.
  Duration stall_time = std::chrono::milliseconds(20);
  double reset = 0;      // A call's connection is reset, before or after it was carried out.
  double lose = 0;       // A datagram vanishes.
  double duplicate = 0;  // A datagram arrives twice.
  // How long a caller's kernel takes to notice that the other side is gone or cut off.
  Duration detection = std::chrono::milliseconds(200);

  // Rates between none and severe, each on its own, so that seeds differ in kind.
  [[nodiscard]] static FaultRates Draw(Rng& rng);
  [[nodiscard]] std::string ToString() const;
};

class Network {
 public:
  // Runs on the caller when the answer arrives.
  using Reply = std::move_only_function<void()>;
  // Runs on the callee when the request arrives; what it returns travels back.
  using Serve = std::move_only_function<Reply()>;
  // Runs on the caller when no answer will arrive: the request may or may not have been served.
  using Lost = std::move_only_function<void(const Error&)>;

  Network(Simulator& simulator, FaultRates rates) : simulator_(simulator), rates_(rates) {}

  // Rates from now on; what is under way keeps its fate. FaultRates{} is a calm network.
  void SetRates(const FaultRates& rates) { rates_ = rates; }
  [[nodiscard]] const FaultRates& rates() const { return rates_; }

  // Processes start up.
  ProcessId AddProcess(std::string name);
  [[nodiscard]] const std::string& Name(ProcessId process) const;
  [[nodiscard]] bool IsUp(ProcessId process) const;
  // Counts the lives of a process: it grows at every Crash().
  [[nodiscard]] std::uint64_t Life(ProcessId process) const;

  // The process vanishes with all that it had scheduled by RunOn. Callers learn of it sooner
  // (reset) or later (detection). Its own calls are forgotten, but what it sent may still arrive.
  void Crash(ProcessId process);
  // Comes up as a new life; what it does first is up to the caller.
  void Restart(ProcessId process);

  // Runs `task` after `delay` if the process is then still in the life that it is in now.
  void RunOn(ProcessId process, Duration delay, Simulator::Task task);

  // Cuts the two off from each other until `heal`; several cuts add up.
  void Partition(ProcessId a, ProcessId b, Duration heal);
  void HealAll();
  [[nodiscard]] bool Reachable(ProcessId a, ProcessId b) const;

  // Exactly one of what `serve` returned and `lost` runs, unless the caller's life ends before.
  void Call(ProcessId from, ProcessId to, std::uint32_t lane, Serve serve, Lost lost);

  // Runs `deliver` on `to` once, twice or never.
  void Send(ProcessId from, ProcessId to, const std::function<void()>& deliver);

  // One way of a message, as drawn now, without a partition's wait.
  [[nodiscard]] Duration DrawDelay();

 private:
  struct Process {
    std::string name;
    bool up = true;
    std::uint64_t life = 0;
  };
  struct PendingCall;
  struct Lane {
    Instant last_request{};  // Nothing sent later arrives earlier.
    Instant last_reply{};
    std::vector<std::weak_ptr<PendingCall>> calls;
  };
  using LaneKey = std::pair<std::pair<ProcessId, ProcessId>, std::uint32_t>;

  static std::pair<ProcessId, ProcessId> Pair(ProcessId a, ProcessId b);
  // When something sent now from a to b would arrive, the partition included; nullopt-like
  // Instant::max() when the cut outlasts what the kernel waits for.
  [[nodiscard]] Instant Arrival(ProcessId a, ProcessId b);
  [[nodiscard]] Duration DrawDetection();
  void Arrive(const std::shared_ptr<PendingCall>& call);
  void SendReply(const std::shared_ptr<PendingCall>& call, Reply reply);
  void Lose(const std::shared_ptr<PendingCall>& call, Duration delay, std::string why);
  void ResetLane(const LaneKey& key, std::string_view why);

  Simulator& simulator_;
  FaultRates rates_;
  std::vector<Process> processes_;
  std::map<std::pair<ProcessId, ProcessId>, Instant> cut_until_;
  std::map<LaneKey, Lane> lanes_;
};

}  // namespace mooncake::sim
