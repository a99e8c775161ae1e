// What the clients of a StoreWorld do, and whether they got what they should.
#include "mooncake-store/tests/sim/store_world.h"
#include "mooncake-store/tests/sim/store_world_parts.h"

namespace mooncake::store {

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

}  // namespace mooncake::store
