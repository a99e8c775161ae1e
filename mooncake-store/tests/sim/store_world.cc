#include "mooncake-store/tests/sim/store_world.h"

#include "mooncake-store/tests/sim/store_world_parts.h"

namespace mooncake::store {

StoreWorld::StoreWorld(sim::Simulator& simulator, SimBug bug, WorldCounts& counts)
    : simulator_(simulator),
      bug_(bug),
      counts_(counts),
      plan_(std::make_unique<Plan>(Plan::Draw(simulator.rng()))),
      network_(simulator, plan_->network),
      engine_(simulator, network_, plan_->engine),
      ledger_(plan_->master.ReadTtl()),
      space_([this](std::uint64_t begin, std::uint64_t end) {
        return engine_.BeingWritten(begin, end);
      }) {}

StoreWorld::~StoreWorld() = default;

std::string StoreWorld::Run() {
  simulator_.Note("{}", plan_->ToString());
  master_process_ = network_.AddProcess("master");
  StartMaster();
  for (std::size_t i = 0; i < plan_->clients; ++i) {
    const std::string name = fmt::format("client{}", i);
    clients_.push_back(ClientSlot{.process = network_.AddProcess(name), .name = name});
    StartClient(i);
  }
  simulator_.After(milliseconds(100), [this] { Disturb(); });
  const Instant end = simulator_.Now() + plan_->busy;
  while (broken_.empty() && simulator_.Now() < end) {
    simulator_.RunFor(milliseconds(10));
  }
  if (broken_.empty()) {
    Break(Settle());
  }
  return broken_;
}

void StoreWorld::Break(std::string what) {
  if (broken_.empty() && !what.empty()) {
    simulator_.Note("BROKEN: {}", what);
    broken_ = std::move(what);
  }
}

// ---- The master ----

void StoreWorld::StartMaster() {
  MasterOptions options = plan_->master;
  options.view_version = ++master_lives_;
  options.seed += master_lives_;
  options.first_version = static_cast<std::uint64_t>(simulator_.Now().time_since_epoch().count());
  const auto on_gone = [this](const std::string& key, GoneWhy why) {
    gone_[key] = simulator_.Now();
    if (why == GoneWhy::kEvicted) {
      ++counts_.evictions[static_cast<std::size_t>(plan_->policy)];
    }
    counts_.lost_objects += static_cast<std::uint64_t>(why == GoneWhy::kSegmentLost);
    if (key.starts_with("keep") && (why == GoneWhy::kRemoved || why == GoneWhy::kReplaced)) {
      Break(fmt::format("the master dropped {} though nobody asked for it", key));
    }
  };
  master_ = std::make_unique<RealMaster>(options, plan_->policy, on_gone);
  master_started_ = simulator_.Now();
  network_.RunOn(master_process_, milliseconds(50), [this] { TickMaster(); });
}

void StoreWorld::TickMaster() {
  master_->Tick(simulator_.Now());
  if (simulator_.rng().Chance(1, 4)) {
    Break(master_->CheckAccounts());
  }
  network_.RunOn(master_process_, milliseconds(100), [this] { TickMaster(); });
}

void StoreWorld::ServeCall(const MasterCall& call, Instant now) {
  const auto* const end = std::get_if<Exchange<BatchPutEndRequest, BatchPutEndReply>>(&call);
  const auto* const remount =
      std::get_if<Exchange<ReMountSegmentsRequest, ReMountSegmentsReply>>(&call);
  if (bug_ == SimBug::kLosesPuts && end != nullptr) {
    // It completes nothing of what it is told to complete, and says that it did.
    BatchPutEndRequest revoking = *end->request;
    for (PutEnding& ending : revoking.endings) {
      ending.success = false;
    }
    BatchPutEndReply ignored;
    master_->Serve(Exchange<BatchPutEndRequest, BatchPutEndReply>{&revoking, &ignored}, now);
    end->reply->code = StoreCode::kOk;
    end->reply->codes.assign(end->request->keys.size(), StoreCode::kOk);
  } else if (bug_ == SimBug::kForgetsSegments && remount != nullptr) {
    ReMountSegmentsRequest none;
    none.caller = remount->request->caller;
    master_->Serve(Exchange<ReMountSegmentsRequest, ReMountSegmentsReply>{&none, remount->reply},
                   now);
  } else {
    master_->Serve(call, now);
    PlantInMaster(call, now);
  }
  NoteServed(call);
  Break(space_.OnServed(call, now));
}

// What the master said about writes and places: the part of a history that explains the rest.
void StoreWorld::NoteServed(const MasterCall& call) {
  if (const auto* start = std::get_if<Exchange<BatchPutStartRequest, BatchPutStartReply>>(&call)) {
    for (std::size_t i = 0; i < start->reply->results.size(); ++i) {
      const PutStartResult& result = start->reply->results[i];
      std::string where;
      for (const Replica& replica : start->reply->table.Replicas(result.replicas)) {
        for (const Extent& extent : start->reply->table.Extents(replica)) {
          where +=
              fmt::format(" {}:{}+{}", extent.segment, extent.offset_bytes, extent.length_bytes);
        }
      }
      simulator_.Note("  master: #{} starts {} {} v{}{}", start->request->caller.client.first,
                      start->request->keys[i], StoreCodeName(result.code), result.version, where);
    }
  }
  if (const auto* end = std::get_if<Exchange<BatchPutEndRequest, BatchPutEndReply>>(&call)) {
    for (std::size_t i = 0; i < end->reply->codes.size(); ++i) {
      simulator_.Note("  master: #{} {} {} v{} {}", end->request->caller.client.first,
                      end->request->endings[i].success ? "completes" : "revokes",
                      end->request->keys[i], end->request->endings[i].version,
                      StoreCodeName(end->reply->codes[i]));
    }
  }
  if (const auto* lookup =
          std::get_if<Exchange<BatchGetReplicasRequest, BatchGetReplicasReply>>(&call)) {
    for (std::size_t i = 0; i < lookup->reply->objects.size(); ++i) {
      simulator_.Note("  master: #{} looks up {} {} v{}", lookup->request->caller.client.first,
                      lookup->request->keys[i], StoreCodeName(lookup->reply->objects[i].code),
                      lookup->reply->objects[i].version);
    }
  }
  if (const auto* exist = std::get_if<Exchange<BatchExistRequest, BatchExistReply>>(&call)) {
    for (std::size_t i = 0; i < exist->reply->exists.size(); ++i) {
      simulator_.Note("  master: #{} asks for {} {}", exist->request->caller.client.first,
                      exist->request->keys[i], exist->reply->exists[i]);
    }
  }
}

void StoreWorld::PlantInMaster(const MasterCall& call, Instant now) {
  const auto* const start = std::get_if<Exchange<BatchPutStartRequest, BatchPutStartReply>>(&call);
  if (start != nullptr && bug_ == SimBug::kSharesBytes) {
    for (Extent& extent : start->reply->table.extents) {
      for (const Extent& other : planted_extents_) {
        if (other.segment == extent.segment && other.incarnation == extent.incarnation &&
            other.length_bytes >= extent.length_bytes) {
          extent.offset_bytes = other.offset_bytes;
        }
      }
      planted_extents_.push_back(extent);
    }
  }
  const auto* const lookup =
      std::get_if<Exchange<BatchGetReplicasRequest, BatchGetReplicasReply>>(&call);
  if (lookup != nullptr && bug_ == SimBug::kForgetsLeases) {
    lookup->reply->lease_ttl_ms *= 20;
  }
  if (bug_ == SimBug::kLeaksSpace && !disturbed_ && start != nullptr) {
    BatchPutStartRequest phantom;
    phantom.caller = start->request->caller;
    phantom.keys = {"phantom"};
    phantom.sizes_bytes = {64};
    BatchPutStartReply started;
    master_->Serve(Exchange<BatchPutStartRequest, BatchPutStartReply>{&phantom, &started}, now);
    BatchPutEndRequest finish{.caller = phantom.caller, .keys = phantom.keys, .endings = {{}}};
    BatchPutEndReply finished;
    master_->Serve(Exchange<BatchPutEndRequest, BatchPutEndReply>{&finish, &finished}, now);
  }
}

void StoreWorld::PlantInReply(const MasterCall& call) const {
  const auto* const lookup =
      std::get_if<Exchange<BatchGetReplicasRequest, BatchGetReplicasReply>>(&call);
  if (lookup != nullptr && bug_ == SimBug::kTrustsDeadLeases) {
    lookup->reply->lease_ttl_ms = lookup->reply->lease_ttl_ms * 20 + 1000;
  }
}

// ---- Clients ----

void StoreWorld::StartClient(std::size_t index) {
  ClientSlot& slot = clients_[index];
  if (slot.client != nullptr) {
    dead_clients_.push_back(std::move(slot.client));
  }
  slot.id = Uuid{next_uuid_++, 77};
  ClientOptions options = plan_->client;
  options.client = slot.id;
  options.host_id = fmt::format("host{}", index % 2);
  slot.client = std::make_unique<SimClient>(
      simulator_, network_, engine_,
      MasterAccess{.process = master_process_,
                   .serve = [this](const MasterCall& call, Instant now) { ServeCall(call, now); },
                   .on_reply = [this](const MasterCall& call) { PlantInReply(call); }},
      slot.process, options);
  const SegmentInfo segment{.id = Uuid{next_uuid_++, 99},
                            .name = slot.name,
                            .base_address = engine_.Allocate(slot.process, plan_->segment_bytes),
                            .size_bytes = plan_->segment_bytes,
                            .te_endpoint = slot.name,
                            .protocol = "tcp",
                            .host_id = options.host_id};
  slot.client->core().membership().Want(segment);
  auto mount = std::make_shared<MountOperation>(slot.client->core());
  mount->Start({.caller = {}, .segment = segment}, seconds(60));
  slot.client->Run(*mount, mount, [this, mount, index] {
    simulator_.Note("client{} mounted: {} {}", index, StoreCodeName(mount->code()),
                    StoreCodeName(mount->reply().code));
    clients_[index].client->StartHeartbeat();
  });
  ScheduleWork(index);
}

void StoreWorld::Disturb() {
  if (!disturbed_) {
    return;
  }
  Rng& rng = simulator_.rng();
  if (Happens(rng, plan_->partition)) {
    const std::size_t parties = clients_.size() + 1;
    const auto process = [&](std::size_t i) {
      return i == clients_.size() ? master_process_ : clients_[i].process;
    };
    const std::size_t a = rng.Uniform(parties);
    const std::size_t b = rng.Uniform(parties);
    if (a != b) {
      network_.Partition(process(a), process(b),
                         Duration(rng.Uniform(plan_->longest_cut.count() + 1)));
    }
  }
  if (Happens(rng, plan_->client_crash)) {
    const std::size_t victim = rng.Uniform(clients_.size());
    if (network_.IsUp(clients_[victim].process)) {
      ++counts_.client_crashes;
      network_.Crash(clients_[victim].process);
      simulator_.After(DrawTime(rng, milliseconds(1), milliseconds(2000)), [this, victim] {
        if (!network_.IsUp(clients_[victim].process)) {
          network_.Restart(clients_[victim].process);
          StartClient(victim);
        }
      });
    }
  }
  if (Happens(rng, plan_->master_restart) && network_.IsUp(master_process_)) {
    ++counts_.master_restarts;
    network_.Crash(master_process_);
    simulator_.After(DrawTime(rng, milliseconds(1), milliseconds(1000)), [this] {
      if (!network_.IsUp(master_process_)) {
        network_.Restart(master_process_);
        StartMaster();
      }
    });
  }
  simulator_.After(milliseconds(100), [this] { Disturb(); });
}

// ---- The end ----
std::string StoreWorld::Settle() {
  simulator_.Note("calm");
  disturbed_ = false;
  network_.SetRates(sim::FaultRates{});
  engine_.SetRates(EngineRates{});
  network_.HealAll();
  if (!network_.IsUp(master_process_)) {
    network_.Restart(master_process_);
    StartMaster();
  }
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (!network_.IsUp(clients_[i].process)) {
      network_.Restart(clients_[i].process);
      StartClient(i);
    }
  }
  // Longest of: a call's patience, reports of failed reads (5 s), a dead client's TTL, open writes
  // of the dead (put_release), resting ranges.
  const Duration quiet = plan_->master.put_release + plan_->master.client_ttl +
                         plan_->master.lease_ttl + plan_->client.master_patience + seconds(6);
  const Instant end = simulator_.Now() + quiet;
  while (broken_.empty() && simulator_.Now() < end) {
    simulator_.RunFor(milliseconds(100));
  }
  for (const ClientSlot& slot : clients_) {
    counts_.remounts += slot.client->core().membership().remounts();
    if (slot.client->running() != 0) {
      return fmt::format("{} still has {} calls under way", slot.name, slot.client->running());
    }
    if (!slot.client->core().membership().master_reachable()) {
      return fmt::format("{} does not reach the master in calm", slot.name);
    }
  }
  const Master& master = master_->master();
  if (master.counters().in_flight_bytes != 0 || master.counters().resting_bytes != 0) {
    return fmt::format("{} bytes are in flight and {} at rest though nobody writes",
                       master.counters().in_flight_bytes.load(),
                       master.counters().resting_bytes.load());
  }
  if (master.MeasureUsage().capacity_bytes != clients_.size() * plan_->segment_bytes) {
    return fmt::format("{} bytes are mounted by {} clients of {}",
                       master.MeasureUsage().capacity_bytes, clients_.size(), plan_->segment_bytes);
  }
  Break(master_->CheckAccounts());
  // What was acknowledged and did not go is there, for everybody.
  for (std::uint64_t i = 0; i < next_keep_ && broken_.empty(); ++i) {
    const std::string key = fmt::format("keep{}", i);
    const auto write = ledger_.AcknowledgedBefore(key, simulator_.Now());
    if (!write) {
      continue;
    }
    // A master that starts anew knows nothing; a key of a call may have been completed long before
    // the call ended.
    const bool excused = ledger_.BegunAt(*write) <= master_started_ || gone_.contains(key);
    if (!excused) {
      ++counts_.kept_checked;
      Get(simulator_.rng().Uniform(clients_.size()), {key}, /*must_exist=*/true);
    }
  }
  simulator_.RunFor(seconds(1));
  // New work succeeds everywhere.
  for (std::size_t i = 0; i < clients_.size() && broken_.empty(); ++i) {
    Put(i, {fmt::format("calm{}", i)}, /*upsert=*/false);
  }
  simulator_.RunFor(seconds(1));
  for (std::size_t i = 0; i < clients_.size() && broken_.empty(); ++i) {
    for (std::size_t j = 0; j < clients_.size(); ++j) {
      Get(j, {fmt::format("calm{}", i)}, /*must_exist=*/true);
    }
  }
  simulator_.RunFor(seconds(1));
  Break(master_->CheckAccounts());
  Break(CheckUsedBytes());
  for (const ClientSlot& slot : clients_) {
    if (broken_.empty() && slot.client->running() != 0) {
      return fmt::format("{} still has {} calls under way", slot.name, slot.client->running());
    }
  }
  return broken_;
}

// Adds up what a lookup of every key that was ever written finds. Nothing is being written now.
std::string StoreWorld::CheckUsedBytes() {
  std::vector<std::string> keys;
  keys.reserve(kHotKeys + next_keep_ + clients_.size());
  for (std::uint64_t i = 0; i < kHotKeys; ++i) {
    keys.push_back(fmt::format("hot{}", i));
  }
  for (std::uint64_t i = 0; i < next_keep_; ++i) {
    keys.push_back(fmt::format("keep{}", i));
  }
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    keys.push_back(fmt::format("calm{}", i));
  }
  BatchGetReplicasRequest request;
  request.caller.client = Uuid{1ULL << 40, 1};
  request.keys.assign(keys.begin(), keys.end());
  BatchGetReplicasReply reply;
  master_->Serve(Exchange<BatchGetReplicasRequest, BatchGetReplicasReply>{&request, &reply},
                 simulator_.Now());
  std::uint64_t bytes = 0;
  for (const ObjectLocation& object : reply.objects) {
    for (const Replica& replica : reply.table.Replicas(object.replicas)) {
      for (const Extent& extent : reply.table.Extents(replica)) {
        bytes += (extent.length_bytes + kSpaceUnitBytes - 1) / kSpaceUnitBytes * kSpaceUnitBytes;
      }
    }
  }
  const MasterCounters& counters = master_->master().counters();
  const std::uint64_t used = master_->master().MeasureUsage().used_bytes;
  if (used != bytes + counters.resting_bytes + counters.in_flight_bytes) {
    return fmt::format("{} bytes are used, but the objects written have {}, {} rest, {} in flight",
                       used, bytes, counters.resting_bytes.load(), counters.in_flight_bytes.load());
  }
  return "";
}

}  // namespace mooncake::store
