// What only the files of StoreWorld see: the plan that a seed draws, and the calls under way.
//
// Thread-safety: none, as StoreWorld.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "mooncake-store/src/client/get_operation.h"
#include "mooncake-store/src/client/key_operations.h"
#include "mooncake-store/src/client/put_operation.h"
#include "mooncake-store/tests/sim/store_world.h"

namespace mooncake::store {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kHotKeys = 12;

inline Duration DrawTime(Rng& rng, milliseconds from, milliseconds to) {
  return milliseconds(rng.Between(static_cast<std::uint64_t>(from.count()),
                                  static_cast<std::uint64_t>(to.count())));
}

inline bool Happens(Rng& rng, double probability) {
  return probability > 0 && rng.UnitInterval() < probability;
}

// All that a seed decides before it begins.
struct StoreWorld::Plan {
  std::size_t clients = 2;
  std::uint64_t segment_bytes = 0;
  std::uint64_t largest_value = 0;
  MasterOptions master;
  EvictionPolicyKind policy = EvictionPolicyKind::kHdi;
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
    plan.master.read_ttl = DrawTime(rng, milliseconds(5), milliseconds(1000));
    plan.master.client_ttl = DrawTime(rng, milliseconds(700), milliseconds(3000));
    plan.master.put_discard = DrawTime(rng, milliseconds(500), milliseconds(4000));
    plan.master.put_release = plan.master.put_discard + seconds(4);
    plan.master.shard_count = 1U << rng.Uniform(4);
    plan.master.seed = rng.Next();
    plan.policy = rng.Chance(1, 2) ? EvictionPolicyKind::kHdi : EvictionPolicyKind::kLru;
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
        "{} clients of {} KiB, values to {} bytes, lease {} ms, reads {} ms, client ttl {} ms, "
        "discard {} ms, "
        "cache {}, put wait {} ms, windows of {} keys {} bytes, busy {} ms, a call each {} ms, "
        "partition {:.3f} up to {} ms, client crash {:.3f}, master restart {:.3f}; {}; {}",
        clients, segment_bytes / 1024, largest_value, ms(master.lease_ttl), ms(master.read_ttl),
        ms(master.client_ttl), ms(master.put_discard), client.descriptor_cache, ms(client.put_wait),
        client.window_keys, client.window_bytes, ms(busy), ms(between_calls), partition,
        ms(longest_cut), client_crash, master_restart, network.ToString(), engine.ToString());
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

}  // namespace mooncake::store
