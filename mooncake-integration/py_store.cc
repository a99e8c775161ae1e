#include "mooncake-integration/py_store.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "mooncake-common/src/base/clock.h"
#include "mooncake-common/src/base/log.h"
#include "mooncake-integration/live_objects.h"
#include "mooncake-integration/py_sequence.h"
#include "mooncake-store/src/client/failure.h"

namespace mooncake::integration {
namespace {

using store::Client;
using store::GetItem;
using store::RememberError;
using store::StoreCode;

constexpr int kInvalidParams = static_cast<int>(StoreCode::kInvalidParams);
constexpr Duration kLeavePatience = std::chrono::seconds(30);

int NotSetUp() {
  return static_cast<int>(
      RememberError(StoreCode::kInvalidParams,
                    store::FailureText(StoreCode::kInvalidParams, "use the store", "",
                                       "it is not set up in this process, or was closed; call "
                                       "setup()")));
}

int Refuse(std::string_view verb, std::string_view key, std::string_view cause) {
  return static_cast<int>(RememberError(
      StoreCode::kInvalidParams, store::FailureText(StoreCode::kInvalidParams, verb, key, cause)));
}

std::vector<int> ToInts(const std::vector<StoreCode>& codes) {
  std::vector<int> ints(codes.size());
  std::ranges::transform(codes, ints.begin(),
                         [](StoreCode code) { return static_cast<int>(code); });
  return ints;
}

std::int64_t BytesOrCode(const store::GetOperation::Result& result) {
  return result.code == StoreCode::kOk ? static_cast<std::int64_t>(result.bytes)
                                       : static_cast<std::int64_t>(result.code);
}

// Group ids come one a key; a single put has exactly one.
bool GroupsFit(const store::ReplicateConfig& config, std::size_t keys) {
  return !config.group_ids || config.group_ids->size() == keys;
}

}  // namespace

std::shared_ptr<PyStore> PyStore::Create(void (*destroy)(PyStore*)) {
  return std::shared_ptr<PyStore>(new PyStore(), destroy);
}

template <typename Work, typename Otherwise>
auto PyStore::With(Work work, Otherwise otherwise) const
    -> decltype(work(std::declval<const std::shared_ptr<store::Client>&>())) {
  const std::shared_ptr<Client> client =
      running_.With([](const Running& running) { return running.client; });
  return client ? work(client) : otherwise();
}

int PyStore::Setup(const store::ClientSettings& settings) {
  Close();
  auto created = Client::Create(settings);
  if (!created) {
    return static_cast<int>(RememberError(created.error().code, created.error().text));
  }
  LiveObjects<PyStore>::Add(shared_from_this());
  const auto gone = std::make_shared<Event>();
  Running fresh{.client = {created->release(),
                           [gone](Client* last) {
                             delete last;
                             gone->Notify();
                           }},
                .gone = gone};
  // What another thread has set up meanwhile ends with its last call.
  running_.With([&](Running& running) { std::swap(running, fresh); });
  return 0;
}

int PyStore::Close() {
  LiveObjects<PyStore>::Remove(this);
  Running ended = running_.With([](Running& running) { return std::exchange(running, Running{}); });
  if (ended.client) {
    ended.client->Close();
    ended.client = nullptr;
    // Calls have just been ended; they leave. Who does not keeps what it uses alive.
    if (!ended.gone->Wait(SteadyClock::Get().Now() + kLeavePatience)) {
      MC_LOG_WARNING("a call on a closed store has not returned after {} s; close() goes on",
                     kLeavePatience / std::chrono::seconds(1));
    }
  }
  return 0;
}

bool PyStore::IsSetUp() const {
  return With([](const auto& /*client*/) { return true; },
              [] {
                NotSetUp();
                return false;
              });
}

std::string PyStore::Hostname() const {
  return With([](const auto& client) { return client->hostname(); },
              [] {
                NotSetUp();
                return std::string();
              });
}

int PyStore::HealthCheck() const {
  return With([](const auto& client) { return static_cast<int>(client->health()); },
              [] { return static_cast<int>(store::Health::kNotInitialised); });
}

std::vector<int> PyStore::Put(std::span<const store::PutItem> items,
                              const store::ReplicateConfig& config, bool upsert) {
  return With(
      [&](const auto& client) {
        if (client->local_buffer() == nullptr) {
          return std::vector<int>(
              items.size(),
              Refuse("put", items.empty() ? "" : items.front().key,
                     "the store was set up without a local buffer; give local_buffer_size"));
        }
        if (config.prefer_alloc_in_same_node) {
          return std::vector<int>(items.size(),
                                  Refuse("put", items.empty() ? "" : items.front().key,
                                         "prefer_alloc_in_same_node is for calls without a copy"));
        }
        if (!GroupsFit(config, items.size())) {
          return std::vector<int>(
              items.size(),
              Refuse("put", items.empty() ? "" : items.front().key, "give one group id a key"));
        }
        return ToInts(client->Put(items, config, upsert));
      },
      [&] { return std::vector<int>(items.size(), NotSetUp()); });
}

std::vector<std::int64_t> PyStore::Get(std::span<const std::string_view> keys,
                                       store::DestinationProvider& provide) {
  return With(
      [&](const auto& client) {
        std::vector<std::int64_t> sizes(keys.size());
        if (client->local_buffer() == nullptr) {
          std::ranges::fill(
              sizes, Refuse("get", keys.empty() ? "" : keys.front(),
                            "the store was set up without a local buffer; give local_buffer_size"));
          return sizes;
        }
        if (keys.size() == 1) {
          sizes[0] = BytesOrCode(client->GetOne(
              {.key = keys[0], .fragments = {}, .fragment_results = nullptr}, &provide));
          return sizes;
        }
        std::vector<GetItem> items(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i) {
          items[i].key = keys[i];
        }
        const auto results = client->Get(items, &provide);
        std::ranges::transform(results, sizes.begin(), BytesOrCode);
        return sizes;
      },
      [&] { return std::vector<std::int64_t>(keys.size(), NotSetUp()); });
}

std::vector<std::unique_ptr<ObjectBuffer>> PyStore::GetBuffers(
    std::span<const std::string_view> keys) {
  return With(
      [&](const std::shared_ptr<Client>& client) {
        struct Provider final : store::DestinationProvider {
          explicit Provider(const std::shared_ptr<Client>& owner, std::size_t count)
              : client(owner), buffers(count) {}
          std::byte* Provide(std::uint32_t item, std::uint64_t size_bytes) override {
            const auto& local = client->local_buffer();
            const auto range = local == nullptr ? std::nullopt : local->TryTake(size_bytes);
            buffers[item] = range ? std::make_unique<ObjectBuffer>(local, *range)
                                  : std::make_unique<ObjectBuffer>(size_bytes);
            return buffers[item]->bytes().data();
          }
          const std::shared_ptr<Client>& client;
          std::vector<std::unique_ptr<ObjectBuffer>> buffers;
        } provider(client, keys.size());
        std::vector<GetItem> items(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i) {
          items[i].key = keys[i];
        }
        const auto results = client->Get(items, &provider);
        for (std::size_t i = 0; i < keys.size(); ++i) {
          if (results[i].code != StoreCode::kOk) {
            provider.buffers[i].reset();
          }
        }
        return std::move(provider.buffers);
      },
      [&] {
        NotSetUp();
        return std::vector<std::unique_ptr<ObjectBuffer>>(keys.size());
      });
}

std::vector<int> PyStore::PutFrom(std::span<const store::PutItem> items,
                                  const store::ReplicateConfig& config, bool upsert) {
  return With(
      [&](const auto& client) {
        if (!GroupsFit(config, items.size())) {
          return std::vector<int>(
              items.size(),
              Refuse("put", items.empty() ? "" : items.front().key, "give one group id a key"));
        }
        std::vector<int> codes(items.size(), 0);
        std::vector<store::PutItem> good;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < items.size(); ++i) {
          const bool registered =
              std::ranges::all_of(items[i].pieces, [&](const store::SourcePiece& piece) {
                return client->IsRegistered(piece.memory, piece.length_bytes, MemoryAccess::kRead);
              });
          if (registered) {
            good.push_back(items[i]);
            places.push_back(i);
          } else {
            codes[i] = Refuse("put", items[i].key,
                              "its memory is not registered; call register_buffer() first");
          }
        }
        if (good.size() == items.size()) {
          return ToInts(client->Put(items, config, upsert));
        }
        if (good.empty()) {
          return codes;
        }
        store::ReplicateConfig of_good = config;
        if (of_good.group_ids) {
          of_good.group_ids->clear();
          for (const std::size_t place : places) {
            of_good.group_ids->push_back((*config.group_ids)[place]);
          }
        }
        const auto results = client->Put(good, of_good, upsert);
        for (std::size_t i = 0; i < good.size(); ++i) {
          codes[places[i]] = static_cast<int>(results[i]);
        }
        return codes;
      },
      [&] { return std::vector<int>(items.size(), NotSetUp()); });
}

std::vector<std::int64_t> PyStore::GetInto(
    std::span<const std::string_view> keys,
    std::span<const std::vector<store::Fragment>> fragments) {
  return With(
      [&](const auto& client) {
        std::vector<std::int64_t> sizes(keys.size());
        std::vector<GetItem> items;
        std::vector<std::size_t> places;
        items.reserve(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i) {
          const bool registered =
              std::ranges::all_of(fragments[i], [&](const store::Fragment& fragment) {
                return client->IsRegistered(fragment.memory, fragment.length_bytes,
                                            MemoryAccess::kWrite);
              });
          if (!registered) {
            sizes[i] = Refuse("get", keys[i],
                              "its memory is not registered, or may only be read; call "
                              "register_buffer() first, with memory that may be written");
            continue;
          }
          items.push_back({.key = keys[i], .fragments = fragments[i], .fragment_results = nullptr});
          places.push_back(i);
        }
        if (items.size() == 1) {
          sizes[places[0]] = BytesOrCode(client->GetOne(items[0]));
        } else if (!items.empty()) {
          const auto results = client->Get(items);
          for (std::size_t i = 0; i < items.size(); ++i) {
            sizes[places[i]] = BytesOrCode(results[i]);
          }
        }
        return sizes;
      },
      [&] { return std::vector<std::int64_t>(keys.size(), NotSetUp()); });
}

void PyStore::GetRanges(std::span<RangesRequest> requests) {
  With(
      [&](const auto& client) {
        std::vector<std::vector<store::Fragment>> fragments(requests.size());
        std::vector<std::vector<std::size_t>> places(requests.size());
        std::vector<std::vector<std::int64_t>> results(requests.size());
        std::vector<GetItem> items;
        std::vector<std::size_t> asked;
        for (std::size_t r = 0; r < requests.size(); ++r) {
          RangesRequest& request = requests[r];
          const std::size_t count = request.destinations.size();
          request.results.assign(count, kInvalidParams);
          if (request.sources.size() != count || request.sizes.size() != count) {
            Refuse("get ranges of", request.key,
                   "give one source offset and one size a destination offset");
            continue;
          }
          for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t address = request.buffer + request.destinations[i];
            std::byte* const memory = ToPointer(address);
            if (address < request.buffer || request.sizes[i] == 0 ||
                !client->IsRegistered(memory, request.sizes[i], MemoryAccess::kWrite)) {
              Refuse(
                  "get ranges of", request.key,
                  "the destination is empty, or not inside registered memory that may be written");
              continue;
            }
            fragments[r].push_back({.memory = memory,
                                    .object_offset = request.sources[i],
                                    .length_bytes = request.sizes[i]});
            places[r].push_back(i);
          }
          if (!fragments[r].empty()) {
            results[r].assign(fragments[r].size(), kInvalidParams);
            items.push_back({.key = request.key,
                             .fragments = fragments[r],
                             .fragment_results = results[r].data()});
            asked.push_back(r);
          }
        }
        if (items.empty()) {
          return;
        }
        static_cast<void>(client->Get(items));
        for (const std::size_t r : asked) {
          for (std::size_t i = 0; i < places[r].size(); ++i) {
            requests[r].results[places[r][i]] = results[r][i];
          }
        }
      },
      [&] {
        for (RangesRequest& request : requests) {
          request.results.assign(request.destinations.size(), NotSetUp());
        }
      });
}

int PyStore::RegisterBuffer(std::uint64_t address, std::uint64_t length) {
  return With(
      [&](const auto& client) {
        return static_cast<int>(client->RegisterBuffer(ToPointer(address), length));
      },
      NotSetUp);
}

int PyStore::UnregisterBuffer(std::uint64_t address) {
  return With(
      [&](const auto& client) {
        return static_cast<int>(client->UnregisterBuffer(ToPointer(address)));
      },
      NotSetUp);
}

std::vector<int> PyStore::Exist(std::span<const std::string_view> keys) {
  return With(
      [&](const auto& client) {
        const auto found = client->Exist(keys);
        return std::vector<int>(found.begin(), found.end());
      },
      [&] { return std::vector<int>(keys.size(), NotSetUp()); });
}

std::vector<int> PyStore::Remove(std::span<const std::string_view> keys, bool force) {
  return With([&](const auto& client) { return ToInts(client->Remove(keys, force)); },
              [&] { return std::vector<int>(keys.size(), NotSetUp()); });
}

std::int64_t PyStore::RemoveByRegex(std::string_view pattern, bool force) {
  return With([&](const auto& client) { return client->RemoveByRegex(pattern, force); },
              [] { return static_cast<std::int64_t>(NotSetUp()); });
}

std::int64_t PyStore::RemoveAll(bool force) {
  return With([&](const auto& client) { return client->RemoveAll(force); },
              [] { return static_cast<std::int64_t>(NotSetUp()); });
}

std::int64_t PyStore::Size(std::string_view key) {
  return With([&](const auto& client) { return client->Size(key); },
              [] { return static_cast<std::int64_t>(NotSetUp()); });
}

std::vector<std::vector<store::ReplicaInfo>> PyStore::Replicas(
    std::span<const std::string_view> keys) {
  return With([&](const auto& client) { return client->Replicas(keys); },
              [&] {
                NotSetUp();
                return std::vector<std::vector<store::ReplicaInfo>>(keys.size());
              });
}

std::vector<std::string> PyStore::ClearReplicas(std::span<const std::string_view> keys,
                                                std::string_view segment) {
  return With([&](const auto& client) { return client->ClearReplicas(keys, segment); },
              [] {
                NotSetUp();
                return std::vector<std::string>();
              });
}

std::expected<Uuid, int> PyStore::AllocateAndMount(std::uint64_t length) {
  return With(
      [&](const auto& client) -> std::expected<Uuid, int> {
        auto mounted = client->AllocateAndMount(length);
        if (!mounted) {
          return std::unexpected(static_cast<int>(mounted.error().code));
        }
        return *mounted;
      },
      []() -> std::expected<Uuid, int> { return std::unexpected(NotSetUp()); });
}

int PyStore::Unmount(std::string_view segment_id, std::uint64_t grace_ms) {
  const auto id = ParseUuid(segment_id);
  if (!id) {
    return Refuse("unmount segment", segment_id, id.error().message);
  }
  return With([&](const auto& client) { return static_cast<int>(client->Unmount(*id, grace_ms)); },
              NotSetUp);
}

}  // namespace mooncake::integration
