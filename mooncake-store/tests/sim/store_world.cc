#include "mooncake-store/tests/sim/store_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "mooncake-store/src/client/get_operation.h"
#include "mooncake-store/src/client/key_operations.h"
#include "mooncake-store/src/client/put_operation.h"

namespace mooncake::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kHotKeys = 12;

Duration DrawTime(Rng& rng, milliseconds from, milliseconds to) {
  return milliseconds(rng.Between(static_cast<std::uint64_t>(from.count()),
                                  static_cast<std::uint64_t>(to.count())));
}

bool Happens(Rng& rng, double probability) {
  return probability > 0 && rng.UnitInterval() < probability;
}

}  // namespace

// All that a seed decides before it begins.
struct StoreWorld::Plan {
  std::size_t clients = 2;
  std::uint64_t segment_bytes = 0;
  std::uint64_t largest_value = 0;
  MasterOptions master;
  ClientOptions client;
  Duration busy{};  // Disturbances and workload last so long.
  Duration between_calls{};
  double partition = 0;       // Each 100 ms.
  double client_crash = 0;    // Each 100 ms.
  double master_restart = 0;  // Each 100 ms.
  Duration longest_cut{};
  sim::FaultRates network;
  EngineRates engine;

  static Plan Draw(Rng& rng) {
    Plan plan;
    plan.clients = 1 + rng.Uniform(3);
    // From room for a handful of values to room for all that will be written.
    plan.largest_value = 16ULL << rng.Uniform(9);
    plan.segment_bytes = (64ULL << 10) << rng.Uniform(4);
    plan.master.lease_ttl = DrawTime(rng, milliseconds(5), milliseconds(1000));
    plan.master.client_ttl = DrawTime(rng, milliseconds(700), milliseconds(3000));
    plan.master.put_discard = DrawTime(rng, milliseconds(500), milliseconds(4000));
    plan.master.put_release = plan.master.put_discard + seconds(4);
    plan.master.shard_count = 1U << rng.Uniform(4);
    plan.master.seed = rng.Next();
    plan.client.descriptor_cache = rng.Chance(3, 4);
    plan.client.descriptor_cache_entries = 512;
    plan.client.put_wait = rng.Chance(1, 2) ? milliseconds(100) : milliseconds(0);
    plan.client.heartbeat_interval = milliseconds(200);
    plan.client.heartbeat_timeout = milliseconds(500);
    plan.client.rpc_timeout = seconds(2);
    plan.client.master_patience = seconds(3);
    plan.client.window_keys = 1 + static_cast<std::uint32_t>(rng.Uniform(4));
    plan.client.window_bytes = 1 + rng.Uniform(8192);
    plan.busy = DrawTime(rng, milliseconds(1000), milliseconds(5000));
    plan.between_calls = DrawTime(rng, milliseconds(5), milliseconds(80));
    plan.partition = rng.Chance(1, 2) ? 0 : rng.UnitInterval() * 0.1;
    plan.longest_cut = DrawTime(rng, milliseconds(10), milliseconds(4000));
    plan.client_crash = rng.Chance(1, 2) ? 0 : rng.UnitInterval() * 0.05;
    plan.master_restart = rng.Chance(2, 3) ? 0 : rng.UnitInterval() * 0.03;
    plan.network = sim::FaultRates::Draw(rng);
    plan.engine = EngineRates::Draw(rng);
    if (plan.master_restart > 0) {
      // A master that starts anew does not know who still writes on an earlier one's word. It
      // leaves remounted memory alone for one lease, and that has to outlast any write.
      plan.master.lease_ttl = DrawTime(rng, milliseconds(3000), milliseconds(4000));
      plan.client.rpc_timeout = milliseconds(1500);
      plan.engine.slow_time = std::min<Duration>(plan.engine.slow_time, milliseconds(500));
    }
    return plan;
  }

  [[nodiscard]] std::string ToString() const {
    const auto ms = [](Duration time) { return time.count() / 1'000'000; };
    return fmt::format(
        "{} clients of {} KiB, values to {} bytes, lease {} ms, client ttl {} ms, discard {} ms, "
        "cache {}, put wait {} ms, windows of {} keys {} bytes, busy {} ms, a call each {} ms, "
        "partition {:.3f} up to {} ms, client crash {:.3f}, master restart {:.3f}; {}; {}",
        clients, segment_bytes / 1024, largest_value, ms(master.lease_ttl), ms(master.client_ttl),
        ms(master.put_discard), client.descriptor_cache, ms(client.put_wait), client.window_keys,
        client.window_bytes, ms(busy), ms(between_calls), partition, ms(longest_cut), client_crash,
        master_restart, network.ToString(), engine.ToString());
  }
};

struct StoreWorld::PutCall {
  PutCall(ClientCore& core, std::vector<std::string> names)
      : keys(std::move(names)), operation(core) {}
  std::vector<std::string> keys;
  std::vector<std::vector<std::byte>> values;
  std::vector<SourcePiece> pieces;
  std::vector<PutItem> items;
  std::vector<WriteNumber> writes;
  PutOperation operation;
};

struct StoreWorld::GetCall final : DestinationProvider {
  GetCall(ClientCore& core, std::vector<std::string> names)
      : keys(std::move(names)), values(keys.size()), operation(core) {}
  std::byte* Provide(std::uint32_t item, std::uint64_t size) override {
    // Kept: a transfer that was given up may still write to the earlier one.
    earlier.push_back(std::move(values[item]));
    values[item].assign(size, std::byte{0});
    return values[item].data();
  }
  std::vector<std::string> keys;
  std::vector<std::vector<std::byte>> values;
  std::vector<std::vector<std::byte>> earlier;
  std::vector<Fragment> fragments;
  std::vector<std::int64_t> fragment_results;
  std::vector<GetItem> items;
  Instant asked{};
  std::uint32_t client = 0;
  bool must_exist = false;
  GetOperation operation;
};

struct StoreWorld::KeysCall {
  KeysCall(ClientCore& core, std::vector<std::string> names)
      : keys(std::move(names)), views(keys.begin(), keys.end()), exist(core), remove(core) {}
  std::vector<std::string> keys;
  std::vector<std::string_view> views;
  ExistOperation exist;
  RemoveOperation remove;
};

StoreWorld::StoreWorld(sim::Simulator& simulator, SimBug bug, WorldCounts& counts)
    : simulator_(simulator),
      bug_(bug),
      counts_(counts),
      plan_(std::make_unique<Plan>(Plan::Draw(simulator.rng()))),
      network_(simulator, plan_->network),
      engine_(simulator, network_, plan_->engine),
      ledger_(plan_->master.lease_ttl),
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
  master_ = std::make_unique<RealMaster>(options, [this](const std::string& key, GoneWhy why) {
    gone_[key] = simulator_.Now();
    counts_.evictions += static_cast<std::uint64_t>(why == GoneWhy::kEvicted);
    counts_.lost_objects += static_cast<std::uint64_t>(why == GoneWhy::kSegmentLost);
    if (key.starts_with("keep") && (why == GoneWhy::kRemoved || why == GoneWhy::kReplaced)) {
      Break(fmt::format("the master dropped {} though nobody asked for it", key));
    }
  });
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

// ---- The workload ----

void StoreWorld::ScheduleWork(std::size_t index) {
  const Duration pause = Duration(simulator_.rng().Uniform(2 * plan_->between_calls.count() + 1));
  network_.RunOn(clients_[index].process, pause, [this, index] {
    if (disturbed_) {
      DoSomething(index);
      ScheduleWork(index);
    }
  });
}

std::string StoreWorld::HotKey() {
  return fmt::format("hot{}", simulator_.rng().Uniform(kHotKeys));
}

std::string StoreWorld::KeepKey() {
  return fmt::format("keep{}", simulator_.rng().Uniform(next_keep_ + 1));
}

std::uint64_t StoreWorld::DrawSize() {
  return kMinValueBytes + simulator_.rng().Uniform(plan_->largest_value);
}

void StoreWorld::DoSomething(std::size_t index) {
  Rng& rng = simulator_.rng();
  std::vector<std::string> hot;
  for (std::uint64_t i = 0; i <= rng.Uniform(5); ++i) {
    hot.push_back(HotKey());
  }
  switch (rng.Uniform(10)) {
    case 0:
    case 1:
      Put(index, std::move(hot), /*upsert=*/false, 1 + static_cast<std::uint32_t>(rng.Uniform(2)));
      break;
    case 2: {
      std::vector<std::string> keep;
      for (std::uint64_t i = 0; i <= rng.Uniform(3); ++i) {
        keep.push_back(fmt::format("keep{}", next_keep_++));
      }
      Put(index, std::move(keep), /*upsert=*/false);
      break;
    }
    case 3:
      Put(index, std::move(hot), /*upsert=*/true);
      break;
    case 4:
      Remove(index, std::move(hot), rng.Chance(1, 2));
      break;
    case 5:
      AskExist(index, std::move(hot));
      break;
    case 6:
      GetRange(index, HotKey());
      break;
    default:
      hot.push_back(KeepKey());
      Get(index, std::move(hot));
  }
}

void StoreWorld::Put(std::size_t index, std::vector<std::string> keys, bool upsert,
                     std::uint32_t replicas) {
  SimClient& client = *clients_[index].client;
  auto call = std::make_shared<PutCall>(client.core(), std::move(keys));
  const auto number = static_cast<std::uint32_t>(client.core().options().client.first);
  const std::size_t count = call->keys.size();
  for (const std::string& key : call->keys) {
    const std::uint64_t size = DrawSize();
    call->writes.push_back(ledger_.WriteBegins(key, size, upsert, number, simulator_.Now()));
    call->values.push_back(ValueOf(call->writes.back(), size));
  }
  // Two pieces a value, so that gathering is exercised too.
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t cut = simulator_.rng().Uniform(call->values[i].size());
    call->pieces.push_back({call->values[i].data(), cut});
    call->pieces.push_back({call->values[i].data() + cut, call->values[i].size() - cut});
  }
  for (std::size_t i = 0; i < count; ++i) {
    call->items.push_back(
        {.key = call->keys[i], .pieces = std::span(call->pieces).subspan(2 * i, 2)});
  }
  std::vector<DescriptorCache::Hit> remembered;
  if (bug_ == SimBug::kRemembersOldWrites) {
    for (const std::string& key : call->keys) {
      remembered.push_back(client.core().cache().Find(key, simulator_.Now()));
    }
  }
  call->operation.Start(call->items, ReplicateConfigView{.replica_num = replicas}, upsert);
  client.Run(call->operation, call, [this, call, upsert, index, &client, remembered] {
    for (std::size_t i = 0; i < remembered.size(); ++i) {
      DescriptorCache& cache = client.core().cache();
      if (remembered[i].location != nullptr) {
        cache.Offer(call->keys[i], remembered[i].location, remembered[i].lease_until,
                    cache.TicketFor(call->keys[i]));
      }
    }
    std::set<std::uint32_t> existed;
    for (const Failure& failure : call->operation.failures().kept()) {
      if (failure.code == StoreCode::kObjectAlreadyExists) {
        existed.insert(failure.item);
      }
    }
    for (std::uint32_t i = 0; i < call->keys.size(); ++i) {
      const StoreCode code = call->operation.results()[i];
      // An upsert of a key twice in a call acknowledges only the last.
      const bool last = std::find(call->keys.begin() + i + 1, call->keys.end(), call->keys[i]) ==
                        call->keys.end();
      simulator_.Note("client{} {} {} write {}: {}{}", index, upsert ? "upsert" : "put",
                      call->keys[i], call->writes[i], StoreCodeName(code),
                      existed.contains(i) ? " (existed)" : "");
      if (code == StoreCode::kOk && !existed.contains(i) && (!upsert || last)) {
        ledger_.WriteAcknowledged(call->writes[i], simulator_.Now());
      }
      counts_.puts += static_cast<std::uint64_t>(code == StoreCode::kOk && !upsert);
      counts_.upserts += static_cast<std::uint64_t>(code == StoreCode::kOk && upsert);
      counts_.puts_existed += static_cast<std::uint64_t>(existed.contains(i));
      counts_.puts_refused += static_cast<std::uint64_t>(code == StoreCode::kNoAvailableHandle);
      if (code != StoreCode::kOk && call->keys[i].starts_with("calm")) {
        Break(fmt::format("put in calm: {}", call->operation.failures().Summary()));
      }
    }
  });
}

void StoreWorld::Get(std::size_t index, std::vector<std::string> keys, bool must_exist) {
  SimClient& client = *clients_[index].client;
  auto call = std::make_shared<GetCall>(client.core(), std::move(keys));
  call->asked = simulator_.Now();
  call->client = static_cast<std::uint32_t>(client.core().options().client.first);
  call->must_exist = must_exist;
  for (const std::string& key : call->keys) {
    call->items.push_back({.key = key});
  }
  call->operation.Start(call->items, call.get());
  client.Run(call->operation, call, [this, call] {
    for (std::size_t i = 0; i < call->keys.size(); ++i) {
      CheckGet(*call, i);
    }
  });
}

void StoreWorld::CheckGet(const GetCall& call, std::size_t item) {
  const std::string& key = call.keys[item];
  const StoreCode code = call.operation.results()[item].code;
  if (code == StoreCode::kOk) {
    ++counts_.gets;
    const Ledger::Reading reading =
        ledger_.Read(key, call.values[item], call.client, call.asked, simulator_.Now());
    simulator_.Note("client#{} get {}: write {}", call.client, key, reading.write);
    Break(reading.broken);
    return;
  }
  simulator_.Note("client#{} get {}: {}", call.client, key, StoreCodeName(code));
  counts_.gets_missed += static_cast<std::uint64_t>(code == StoreCode::kObjectNotFound);
  counts_.gets_expired += static_cast<std::uint64_t>(code == StoreCode::kLeaseExpired);
  counts_.gets_failed += static_cast<std::uint64_t>(code == StoreCode::kTransferFail);
  if (call.must_exist) {
    Break(
        fmt::format("{} was acknowledged, neither removed nor evicted nor lost, and a get says {}",
                    key, call.operation.failures().Summary()));
  }
}

void StoreWorld::GetRange(std::size_t index, const std::string& key) {
  SimClient& client = *clients_[index].client;
  auto call = std::make_shared<GetCall>(client.core(), std::vector{key});
  call->asked = simulator_.Now();
  call->client = static_cast<std::uint32_t>(client.core().options().client.first);
  call->values[0].resize(kMinValueBytes);
  const std::uint64_t offset = simulator_.rng().Uniform(plan_->largest_value + kMinValueBytes);
  auto part = std::make_shared<std::vector<std::byte>>(1 + simulator_.rng().Uniform(64));
  call->fragments = {{call->values[0].data(), 0, kMinValueBytes},
                     {part->data(), offset, part->size()}};
  call->fragment_results.resize(2);
  call->items.push_back({.key = call->keys[0],
                         .fragments = call->fragments,
                         .fragment_results = call->fragment_results.data()});
  call->operation.Start(call->items);
  auto both = std::make_shared<std::pair<std::shared_ptr<GetCall>, decltype(part)>>(call, part);
  client.Run(call->operation, both, [this, call, part, offset] {
    if (call->operation.results()[0].code != StoreCode::kOk) {
      return;
    }
    ++counts_.ranges;
    WriteNumber write = 0;
    std::uint64_t size = 0;
    std::memcpy(&write, call->values[0].data(), sizeof write);
    std::memcpy(&size, call->values[0].data() + sizeof write, sizeof size);
    const bool inside = offset + part->size() <= size;
    simulator_.Note("client#{} range of {}: write {} size {}", call->client, call->keys[0], write,
                    size);
    if (size > 2 * plan_->largest_value + kMinValueBytes) {
      Break(fmt::format("a range of {} holds no value", call->keys[0]));
    } else if (inside != (call->fragment_results[1] > 0)) {
      Break(fmt::format("a range of {} bytes at {} of {} gets {}", part->size(), offset, size,
                        call->fragment_results[1]));
    } else if (inside) {
      const auto value = ValueOf(write, size);
      if (!std::equal(part->begin(), part->end(),
                      value.begin() + static_cast<std::ptrdiff_t>(offset))) {
        Break(fmt::format("two ranges of {} are of different versions", call->keys[0]));
      }
    }
  });
}

void StoreWorld::AskExist(std::size_t index, std::vector<std::string> keys) {
  SimClient& client = *clients_[index].client;
  auto call = std::make_shared<KeysCall>(client.core(), std::move(keys));
  call->exist.Start(call->views);
  client.Run(call->exist, call, [] {});
}

void StoreWorld::Remove(std::size_t index, std::vector<std::string> keys, bool force) {
  SimClient& client = *clients_[index].client;
  auto call = std::make_shared<KeysCall>(client.core(), std::move(keys));
  const auto number = static_cast<std::uint32_t>(client.core().options().client.first);
  call->remove.Start(call->views, force);
  client.Run(call->remove, call, [this, call, number, asked = simulator_.Now()] {
    for (std::size_t i = 0; i < call->keys.size(); ++i) {
      const StoreCode code = call->remove.results()[i];
      simulator_.Note("client#{} remove {}: {}", number, call->keys[i], StoreCodeName(code));
      counts_.removes += static_cast<std::uint64_t>(code == StoreCode::kOk);
      ledger_.Removed(call->keys[i], number, asked, code == StoreCode::kOk, simulator_.Now());
    }
  });
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
