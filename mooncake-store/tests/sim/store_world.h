// A whole store in one thread: a master, clients with their memory, a workload, disturbances drawn
// from the seed, and checkers that watch all of it. Then the disturbances stop, and it has to
// settle.
//
// Invariants, each with a planted bug that breaks it:
//   1 no two writes own a byte at a time; what a lookup names is where that version was written
//   2 memory under a live lease is not given away
//   3 a read that succeeds holds exactly one version's bytes, and not one that was history
//   4 an acknowledged put stays readable until removed, evicted or its segments are lost
//   5 the master's accounts of space agree with its objects, and these with what was written
//   6 once all disturbances have stopped, every call ends, every client is mounted, and puts and
//   gets
//     work everywhere
//
// Thread-safety: none; one Simulator drives it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mooncake-common/src/sim/network.h"
#include "mooncake-common/src/sim/simulator.h"
#include "mooncake-store/tests/sim/ledger.h"
#include "mooncake-store/tests/sim/real_master.h"
#include "mooncake-store/tests/sim/sim_client.h"
#include "mooncake-store/tests/sim/sim_engine.h"
#include "mooncake-store/tests/sim/space_checker.h"

namespace mooncake::store {

enum class SimBug : std::uint8_t {
  kNone,
  kSharesBytes,         // Breaks 1: the master sometimes gives two writes one range.
  kForgetsLeases,       // Breaks 2: it promises longer leases than it keeps.
  kTrustsDeadLeases,    // Breaks 3: clients believe that their leases live longer than they were
                        // told.
  kRemembersOldWrites,  // Breaks 3: clients' caches do not forget what they write themselves.
  kLosesPuts,           // Breaks 4: the master revokes what it says it has completed.
  kLeaksSpace,          // Breaks 5: space is taken for what nobody wrote.
  kForgetsSegments,     // Breaks 6: the master says that it mounted again, and did not.
};

// How often something worth having happened, over all seeds: a run that never meets the hard cases
// proves nothing.
struct WorldCounts {
  std::uint64_t puts = 0;
  std::uint64_t puts_existed = 0;
  std::uint64_t puts_refused = 0;
  std::uint64_t upserts = 0;
  std::uint64_t gets = 0;
  std::uint64_t gets_missed = 0;
  std::uint64_t gets_expired = 0;
  std::uint64_t gets_failed = 0;
  std::uint64_t ranges = 0;
  std::uint64_t removes = 0;
  std::array<std::uint64_t, 2> evictions{};  // By EvictionPolicyKind.
  std::uint64_t lost_objects = 0;
  std::uint64_t remounts = 0;
  std::uint64_t client_crashes = 0;
  std::uint64_t master_restarts = 0;
  std::uint64_t kept_checked = 0;  // Acknowledged puts that the end of a run looked for.
};

class StoreWorld {
 public:
  StoreWorld(sim::Simulator& simulator, SimBug bug, WorldCounts& counts);
  ~StoreWorld();

  // The whole run; what broke, or empty.
  [[nodiscard]] std::string Run();

 private:
  struct Plan;
  struct PutCall;
  struct GetCall;
  struct KeysCall;

  struct ClientSlot {
    sim::ProcessId process = 0;
    std::string name;
    std::unique_ptr<SimClient> client;
    Uuid id;
  };

  void StartMaster();
  void StartClient(std::size_t index);
  void ServeCall(const MasterCall& call, Instant now);
  void NoteServed(const MasterCall& call);
  void PlantInMaster(const MasterCall& call, Instant now);
  void PlantInReply(const MasterCall& call) const;
  void Disturb();
  void ScheduleWork(std::size_t index);
  void DoSomething(std::size_t index);
  void Put(std::size_t index, std::vector<std::string> keys, bool upsert,
           std::uint32_t replicas = 1);
  void Get(std::size_t index, std::vector<std::string> keys, bool must_exist = false);
  void GetRange(std::size_t index, const std::string& key);
  void AskExist(std::size_t index, std::vector<std::string> keys);
  void Remove(std::size_t index, std::vector<std::string> keys, bool force);
  void CheckGet(const GetCall& call, std::size_t item);
  void TickMaster();
  [[nodiscard]] std::string Settle();
  [[nodiscard]] std::string CheckUsedBytes();
  void Break(std::string what);
  [[nodiscard]] std::string HotKey();
  [[nodiscard]] std::string KeepKey();
  [[nodiscard]] std::uint64_t DrawSize();

  sim::Simulator& simulator_;
  const SimBug bug_;
  WorldCounts& counts_;
  std::unique_ptr<Plan> plan_;
  sim::Network network_;
  SimEngine engine_;
  Ledger ledger_;
  SpaceChecker space_;
  sim::ProcessId master_process_ = 0;
  std::unique_ptr<RealMaster> master_;
  std::uint64_t master_lives_ = 0;
  std::vector<ClientSlot> clients_;
  std::vector<std::unique_ptr<SimClient>> dead_clients_;  // Late closures still point to them.
  std::uint64_t next_uuid_ = 1;
  std::uint64_t next_keep_ = 0;
  bool disturbed_ = true;
  std::map<std::string, Instant, std::less<>> gone_;  // When a key last stopped being readable.
  Instant master_started_{};
  std::string broken_;
  std::vector<Extent> planted_extents_;
};

}  // namespace mooncake::store
